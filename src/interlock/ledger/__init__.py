"""Tokens, append-once, replay, the run graph, health, search: the one place where events are recorded."""
