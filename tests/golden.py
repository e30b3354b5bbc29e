"""GEval's golden lines (tests/data/README.md) as files: an output, its answers, and each line's log-loss."""

import json
import lzma
import math
from pathlib import Path

GOLDEN = Path(__file__).parent / "data" / "golden-lines.jsonl.xz"


def write_golden(folder, bits):
    """Write the lines of so many bits into a folder, each at its number; gives the losses, None for the others."""
    rows = [json.loads(line) for line in lzma.open(GOLDEN, "rt", encoding="utf-8")]
    of_line = {row["line"]: row for row in rows if row["bits"] == bits}
    numbers = range(1, max(of_line) + 1)
    other = {"out": ":1", "expected": "a", "log_loss": None}
    lines = [of_line.get(number, other) for number in numbers]
    (folder / "out.tsv").write_text("".join(f"{row['out']}\n" for row in lines), encoding="utf-8", newline="\n")
    (folder / "expected.tsv").write_text(
        "".join(f"{row['expected']}\n" for row in lines), encoding="utf-8", newline="\n"
    )
    return [row["log_loss"] for row in lines]


def check_golden(losses, want):
    """Compare losses with GEval's."""
    assert len(losses) == len(want)
    for number, (loss, golden) in enumerate(zip(losses, want, strict=True), 1):
        assert golden is None or math.isclose(loss, float(golden), rel_tol=1e-9, abs_tol=1e-9), number
