"""The accounts of a board's server: a store of their own, beside one board or several."""
