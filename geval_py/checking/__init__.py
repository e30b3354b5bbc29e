"""Find every problem of a submission, at its line and column, before anyone scores it."""
