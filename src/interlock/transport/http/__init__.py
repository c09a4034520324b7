"""MCP over HTTP: the official SDK's low-level server on Starlette and uvicorn."""
