"""Pages of the documentation that are generated from code. A stale page fails the tests."""
