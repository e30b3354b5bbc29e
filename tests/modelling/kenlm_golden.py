"""What KenLM's lmplz and query answered, run by run."""

import json
import lzma
from pathlib import Path

import pytest

from geval_py.modelling.estimation import Estimation

DATA = Path(__file__).parents[1] / "data" / "kenlm.json.xz"
TEXTS = json.loads(lzma.decompress(DATA.read_bytes()))
RUNS = [
    pytest.param(TEXTS[text], run, id=f"{text} {name}") for text in TEXTS for name, run in TEXTS[text]["runs"].items()
]
MODELS = [param for param in RUNS if "error" not in param.values[1]]
ERRORS = [param for param in RUNS if "error" in param.values[1]]


def options_of(run):
    options = {}
    for word in run["args"]:
        if word.startswith("-"):
            values = options.setdefault(word, [])
        else:
            values.append(word)
    return options


def estimation_of(text, run):
    options = options_of(run)
    fallback = options.get("--discount_fallback")
    fallback = [float(value) for value in fallback or (0.5, 1.0, 1.5)] if fallback is not None else None
    return Estimation(
        order=int(options["-o"][0]),
        prune=tuple(map(int, options.get("--prune", ()))),
        vocabulary=[word.encode() for word in text["vocabulary"]] if "--limit_vocab_file" in options else None,
        fallback=None if fallback is None else tuple((fallback + [fallback[-1]] * 3)[:3]),
        interpolate_unigrams=options.get("--interpolate_unigrams") != ["0"],
        vocabulary_size=int(options.get("--vocab_pad", [0])[0]),
    )
