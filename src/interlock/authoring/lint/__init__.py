"""Checks of a compiled workflow that need more than one file or line."""
