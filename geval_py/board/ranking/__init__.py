"""Leaderboards: which scores may be shown, in which order, and how certain that order is."""
