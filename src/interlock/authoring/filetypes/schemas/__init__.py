"""The published schemas of the file formats, made from the source types and their descriptions."""
