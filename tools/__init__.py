"""Scripts for people who work on Interlock; none of them is part of the package."""
