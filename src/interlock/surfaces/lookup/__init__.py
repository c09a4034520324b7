"""The lookup surface: workflows as documents to read, one step asked for at a time, nothing ever written."""

from interlock.surfaces.lookup.surface import LookupSurface

__all__ = ["LookupSurface"]
