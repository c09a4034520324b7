"""The user's decisions and modes."""
