"""Scores where other tools want them.

- :mod:`geval_py.integrations.torchmetrics`: a metric for training loops of PyTorch, on one or several processes.
"""
