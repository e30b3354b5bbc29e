"""Submissions from strangers: opened, limited, and received."""
