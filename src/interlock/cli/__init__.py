"""For people, thin; also the composition root."""
