"""From paths and addresses to bytes, from bytes to lines, from lines to items."""
