"""The channels for notifications as the user has configured them."""
