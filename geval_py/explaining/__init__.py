"""Explanations of a score: why it is what it is, how sure it is, and what would improve it."""
