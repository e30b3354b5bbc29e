"""The server of a board: accounts, uploads, a queue with its worker, and pages for those who are signed in."""
