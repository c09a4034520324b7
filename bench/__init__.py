"""Measurements. Each module prints its own; no test asserts a time."""
