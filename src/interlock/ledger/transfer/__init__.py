"""Sessions as bundles and as pages."""
