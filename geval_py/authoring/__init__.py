"""Texts -> a challenge: written new, cut from texts, validated, and searched for what it gives away."""
