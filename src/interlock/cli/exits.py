"""Exit codes, the contract with scripts."""

OK = 0
CHECK_FAILED = 1
USAGE = 2
NOT_FOUND = 3
WAITS = 4
CONFLICT = 5
