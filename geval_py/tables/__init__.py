"""Tables, numbers and text in every output format.

The texts of lines go unchanged to files and pipes, and with escaped control characters to terminals. Names (of
metrics, outputs, parameters) are always escaped.
"""
