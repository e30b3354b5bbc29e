"""Where the loss of an output comes from: kinds of misses, parts of the lines, single lines."""
