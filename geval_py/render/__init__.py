"""Turn values into text: the only place that does.

Text from strangers is given as it is to files and pipes, and with its control characters escaped to terminals.
"""
