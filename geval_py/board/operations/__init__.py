"""The operations on a board: create it, add submissions, show its status, score again."""
