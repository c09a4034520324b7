"""Running a workflow without an agent: exploration, scenarios, coverage."""
