"""What may be shown of each output, in which order, and how sure that is."""
