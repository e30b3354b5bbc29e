"""What an organiser does with a board: make it, add to it, look at it, score it again."""
