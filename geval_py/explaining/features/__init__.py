"""Which features of the lines go with bad scores."""
