"""The types of the files that people write, and the checks against them."""
