"""Submissions from strangers, opened in a sandbox under limits."""
