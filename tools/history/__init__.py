"""Recorded calls of concurrent clients, and whether one sequential history per run explains them."""
