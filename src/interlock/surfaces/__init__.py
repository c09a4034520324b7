"""The surfaces: each surface is its tools as data and the rendering of its answers. No MCP types."""
