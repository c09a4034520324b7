"""One package per group of commands, and one module per command, which holds `command`."""
