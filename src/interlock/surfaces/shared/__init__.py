"""What the doors for activity workflows share: documents, shapes, warnings, the session's own tools."""
