"""``geval challenge``, and the modes ``--init`` and ``--validate``: what an organiser does."""
