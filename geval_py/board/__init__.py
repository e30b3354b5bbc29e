"""Collect, check, score, rank and publish submissions: what ``geval board`` calls."""
