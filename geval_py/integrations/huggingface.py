"""A module for Hugging Face's ``evaluate``: ``load(geval_py.integrations.huggingface.__file__, "PerplexityHashed")``.

Its predictions are lines of an output, such as those that :func:`geval_py.format_line` makes, or texts for other
metrics; its references are the expected words or texts.
"""

from typing import Any

import datasets
import evaluate

import geval_py

DESCRIPTION = "A metric of GEval: how good distributions over words are that guess the word missing from a text."
INPUTS = """
    predictions: lines of an output, such as "the:0.5 a:0.25 :0.25", or for other metrics texts.
    references: as many expected words or texts.
    lines: the numbers of the lines, which seed the hash; given to compute(), by default 1, 2, 3, …
    vocabulary, tokenizer: as for geval_py.Metric.
"""


class WordGapMetric(evaluate.Metric):
    """A metric by its name: the configuration, by default PerplexityHashed."""

    config_name: str

    def _info(self) -> evaluate.MetricInfo:
        if self.config_name == "default":
            self.config_name = "PerplexityHashed"
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description=INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
            ),
        )

    def _compute(
        self, predictions: list[str], references: list[str], lines: list[int] | None = None, **settings: Any
    ) -> dict[str, float]:
        metric = geval_py.Metric(self.config_name, **settings)
        return {self.config_name: metric(predictions, references, lines=lines or 1)}
