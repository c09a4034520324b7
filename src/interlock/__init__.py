"""Interlock hands AI agents one workflow step at a time and records every step as a durable event."""

__version__ = "0.1.0"
