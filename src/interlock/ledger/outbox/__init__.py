"""Messages to people about questions and runs: written with the command that they come from, sent later."""
