"""A board as static pages: what is shown is gathered, turned into files, and written beside what it replaces."""
