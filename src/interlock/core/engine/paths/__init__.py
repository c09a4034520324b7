"""The paths of a run: rounds of loops, exits of activities, jumps past them, and the calls that take one."""
