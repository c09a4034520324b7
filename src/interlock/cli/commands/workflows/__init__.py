"""Commands for people who write workflows."""
