"""Commands that read sessions, and those by which the user steers them."""
