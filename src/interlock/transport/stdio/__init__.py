"""MCP over a pipe: our own lean front end."""
