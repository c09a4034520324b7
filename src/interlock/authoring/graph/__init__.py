"""A workflow as a picture."""
