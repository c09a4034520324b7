"""Files become one compiled, hashed workflow."""
