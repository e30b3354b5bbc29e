"""A made-up challenge of translation: sixty lines in three documents, three outputs that fail in known ways."""

from __future__ import annotations

from pathlib import Path

SUBJECTS = ("the old dog", "a cat", "my sister", "the postman from the next village")
VERBS = ("sees", "hears", "follows")
OBJECTS = ("the moon", "a train", "some friends of ours in the garden", "nothing", "the sea")
LINES = 60


def write(folder: Path, metric: str = "BLEU") -> Path:
    """Write the challenge; of its outputs good is best, and bad loses the object of lines that end in nothing."""
    (folder / "dev-0").mkdir(parents=True)
    (folder / "config.txt").write_text(f"--metric {metric} --in-header in-header.tsv\n")
    (folder / "README.md").write_text("# Sayings\n\nThey are translated.\n")
    (folder / "in-header.tsv").write_text("Document\tText\n")
    rows = [(SUBJECTS[n % 4], VERBS[n % 3], OBJECTS[n % 5]) for n in range(LINES)]
    texts = [" ".join(row) for row in rows]
    files = {
        "in": [f"d{n % 3}\t{text.upper()}" for n, text in enumerate(texts)],
        "expected": [f"{text} today\ttoday {text}" for text in texts],
        "out-good": [f"{text} today" if n % 6 else f"{text} now" for n, text in enumerate(texts)],
        "out-middling": [f"{text} today" if n % 2 else text.replace("the", "a") for n, text in enumerate(texts)],
        "out-bad": [f"{one} {verb}" if last == "nothing" else f"{one} {last}" for one, verb, last in rows],
    }
    for name, lines in files.items():
        (folder / "dev-0" / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines))
    return folder
