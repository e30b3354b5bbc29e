"""What leaves a board: its site, its archives."""
