"""The shared store: one PostgreSQL database for any number of processes."""
