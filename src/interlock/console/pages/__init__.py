"""What the console shows: projections of the ledger and of workflows as values, a module per page."""
