"""Running the commands of checks: the only room that starts what a workflow names."""
