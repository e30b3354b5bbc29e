"""Submissions are collected, checked, scored, ranked and published: what ``geval board`` calls."""
