"""Items to line statistics to scores."""
