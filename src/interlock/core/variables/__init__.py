"""Variables of a run: their names, their types, and the questions that own them."""
