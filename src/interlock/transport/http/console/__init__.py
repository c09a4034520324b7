"""The console over HTTP: who may use it, its pages and actions, and what has moved."""
