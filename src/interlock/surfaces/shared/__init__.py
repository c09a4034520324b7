"""What the surfaces for activity workflows share: documents, shapes, warnings, the session's own tools."""
