"""Metrics: ``base`` has those on hashed words, and finds others in ``registry``, which is imported when needed."""
