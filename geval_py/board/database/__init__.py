"""The database of a board, and what is stored in it."""
