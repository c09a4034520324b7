"""The navigation surface: a landscape of available actions, and a state that only the server reads."""

from interlock.surfaces.navigation.surface import NavigationSurface

__all__ = ["NavigationSurface"]
