"""One module a command, each with a click command named `command`; imported only when it is called."""
