"""Evidence: signed statements of what a log records, and how anyone can check them."""
