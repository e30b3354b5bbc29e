"""Make a challenge from samples or from texts, validate it, and search it for leaks."""
