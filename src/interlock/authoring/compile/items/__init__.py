"""Compiles the items of an activity: steps, gates and loops, and what belongs to a step."""
