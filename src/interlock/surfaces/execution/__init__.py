"""The surface of the execution contract: one step at a time, by short signed tokens."""

from interlock.surfaces.execution.surface import ExecutionSurface

__all__ = ["ExecutionSurface"]
