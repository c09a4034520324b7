"""Commands that move, check and set up what is stored."""
