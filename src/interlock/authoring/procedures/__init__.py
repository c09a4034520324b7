"""Markdown written for agents (skills, AGENTS.md, slash commands), turned into step workflows."""
