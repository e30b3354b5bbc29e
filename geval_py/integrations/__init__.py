"""Scores where other tools want them: one module for each tool, which imports it.

- :mod:`geval_py.integrations.torchmetrics`: a metric for training loops of PyTorch, on one or several processes.
- :mod:`geval_py.integrations.huggingface`: a module for Hugging Face's ``evaluate``.
- :mod:`geval_py.integrations.trackers`: scores, with their intervals, in MLflow and in Weights & Biases.
"""
