"""The session door: activities one by one, checkpoints yielded by a worker, answered by its orchestrator."""

from interlock.surfaces.session.surface import SessionSurface

__all__ = ["SessionSurface"]
