"""How sure a score is, and a difference of scores."""
