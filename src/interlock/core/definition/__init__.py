"""What a workflow is."""
