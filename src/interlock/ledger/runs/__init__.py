"""Runs and sessions: positions, children, recaps, pinned workflows."""
