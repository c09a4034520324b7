"""What can be wrong with a workflow file, and how it is reported."""
