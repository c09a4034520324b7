"""The gated surface: every required checkpoint of an activity is pending from its entry."""

from interlock.surfaces.gated.surface import GatedSurface

__all__ = ["GatedSurface"]
