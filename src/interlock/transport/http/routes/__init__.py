"""The routes that are not MCP and not the console: health, metrics, the inbox, and links that answer."""
