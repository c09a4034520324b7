"""Where an activity can be left to: its exits, jumps past them, and the calls that take one."""
