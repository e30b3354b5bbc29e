"""What n-gram baselines learnt, kept between runs: by the digest of the files that they learnt from.

The folder is ``$GEVAL_CACHE``, else ``geval-py`` in ``$XDG_CACHE_HOME`` or in ``~/.cache``. It may be removed at any
time; what is broken there, or cannot be written, is learnt anew.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from hashlib import file_digest, sha256

import numpy as np
from numpy.typing import NDArray

from geval_py.errors import UsageError
from geval_py.modelling.gaps import HOW, GapCounts
from geval_py.modelling.model import NgramModel, Ngrams
from geval_py.reading.rewriting import written_whole
from geval_py.reading.sources import naming
from geval_py.version import __version__

_FIELDS = ("contexts", "words", "log_probabilities", "log_backoffs")


def cache_folder() -> str:
    """Name the folder, which need not be there."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("GEVAL_CACHE") or os.path.join(base, "geval-py")


def digest_of(paths: Sequence[str], sides: int) -> str:
    """Give the digest of files as they are stored, and of what else the result depends on."""
    digest = sha256(repr((__version__, sides, HOW)).encode())
    for path in paths:
        with naming(path), open(path, "rb") as file:
            digest.update(file_digest(file, "sha256").digest())
    return digest.hexdigest()


def load(digest: str) -> GapCounts | None:
    """Give what was learnt of files with a digest; None if it is not there, or broken."""
    try:
        with np.load(_path(digest), allow_pickle=False) as arrays:
            words = arrays["words"].tobytes().split(b"\n")
            sides = tuple(_model(arrays, side, words) for side in range(int(arrays["sides"])))
            return GapCounts(arrays["counts"], sides)
    except (OSError, ValueError, KeyError, EOFError):
        return None


def save(digest: str, learnt: GapCounts) -> None:
    """Keep what was learnt, if that can be."""
    arrays: dict[str, NDArray[np.generic]] = {
        "words": np.frombuffer(b"\n".join(learnt.sides[0].words), np.uint8),
        "counts": learnt.counts,
        "sides": np.array(len(learnt.sides)),
    }
    for side, model in enumerate(learnt.sides):
        arrays[f"order-{side}"] = np.array(model.order)
        for order, level in enumerate(model.levels):
            arrays |= {f"{field}-{side}-{order}": getattr(level, field) for field in _FIELDS}
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **arrays)
    try:
        os.makedirs(cache_folder(), exist_ok=True)
        with written_whole(_path(digest)) as file:
            file.write(data.getvalue())
    except (OSError, UsageError):  # a folder that cannot be written
        return


def _path(digest: str) -> str:
    return os.path.join(cache_folder(), f"{digest}.npz")


def _model(arrays: np.lib.npyio.NpzFile, side: int, words: list[bytes]) -> NgramModel:
    orders = range(int(arrays[f"order-{side}"]))
    levels = (Ngrams(**{field: arrays[f"{field}-{side}-{order}"] for field in _FIELDS}) for order in orders)
    return NgramModel(words=words, levels=tuple(levels))
