"""The database of a board: its schema, migrations and store."""
