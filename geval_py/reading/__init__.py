"""Bytes to lines to items: what users name is found, opened and taken apart."""
