"""For people: projections of the ledger and of workflows as JSON values, and the built page."""
