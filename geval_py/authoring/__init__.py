"""Texts -> a challenge: written from samples, cut from texts, validated, and searched for leaks."""
