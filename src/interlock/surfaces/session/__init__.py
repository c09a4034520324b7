"""The session surface: a worker yields a checkpoint, its orchestrator has it answered."""

from interlock.surfaces.session.surface import SessionSurface

__all__ = ["SessionSurface"]
