"""The only rooms that know MCP."""
