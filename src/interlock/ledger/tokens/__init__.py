"""Tokens: short signed pointers."""
