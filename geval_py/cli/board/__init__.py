"""``geval board``: its commands, a file each."""
