"""The pages of the documentation that are generated from code. A stale one fails the tests."""
