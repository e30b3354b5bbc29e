"""A report as one page to look at, and its charts, for pages and notebooks."""
