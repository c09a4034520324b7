"""Commands that check a record, and sign statements of it."""
