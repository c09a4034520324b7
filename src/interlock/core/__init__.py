"""Values and pure functions: what a workflow is, where a run stands, and what may happen next."""
