"""The append-only, hash-chained log: writing, checking, rebuilding, repairing."""
