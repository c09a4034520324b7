"""Values and pure functions: what a workflow is, the state of a run, and what may happen next."""
