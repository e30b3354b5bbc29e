"""Turn values into text: the only place that does.

Texts of lines are given as they are to files and pipes, and with their control characters escaped to terminals;
names (of metrics, outputs, parameters) are always escaped.
"""
