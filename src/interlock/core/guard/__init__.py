"""The guard: a second judge of every command, which shares nothing with the engine that decides it."""
