"""Commands that start a server, or show one at work."""
