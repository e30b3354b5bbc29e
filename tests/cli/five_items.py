"""A challenge of five items, which the tests of several modes look at."""

YEARS = ["1901", "1901", "1902", "1902", "1903"]
TEXTS = ["New York", "a\x1b[31mb", "new\ttown", "", "York"]
WORDS = ["a", "b", "a", "c", "a"]
OUT = ["a:0.5 :0.5", "b:0.25 d:0.75", "a:1", "a:1", "a:0.25 d:0.75"]  # perplexities 2, 4, 1, inf, 4


def write(folder, name, lines):
    (folder / name).write_text("".join(line + "\n" for line in lines))


def make_challenge(folder, other):
    """Make the challenge in a folder, with two outputs: out.tsv, and one called other."""
    write(folder, "config.txt", ["--metric Perplexity --in-header in-header.tsv"])
    write(folder, "in-header.tsv", ["Year\tText"])
    (folder / "train").mkdir()
    write(folder / "train", "expected.tsv", ["a", "b", "c", "d"])
    (folder / "test-A").mkdir()
    write(folder / "test-A", "in.tsv", [f"{year}\t{text}" for year, text in zip(YEARS, TEXTS, strict=True)])
    write(folder / "test-A", "expected.tsv", WORDS)
    write(folder / "test-A", "out.tsv", OUT)
    write(folder / "test-A", "other", other)
