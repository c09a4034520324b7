"""Text in JSON, YAML, TOON or Markdown, with source locations."""
