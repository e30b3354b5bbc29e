"""The memory of commands on large outputs: they hold a few numbers of each line, not its texts."""

import tracemalloc

import pytest

from geval_py.reading import files

LINES, WORDS = 3000, 200


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    """A challenge whose only output has 8 MB, its answer in each line."""
    monkeypatch.chdir(tmp_path)
    guesses = " ".join(f"w{word}:{1 / (word + 3000)!r}" for word in range(WORDS))
    (tmp_path / "dev-0").mkdir()
    (tmp_path / "config.txt").write_text("--metric PerplexityHashed\n")
    for name, line in (("in", "file{}\tleft\tright"), ("expected", "w{}"), ("out", f"w{{}}:0.{{}}1 {guesses}")):
        lines = [line.format(n % WORDS, n % 7) + "\n" for n in range(LINES)]
        (tmp_path / f"dev-0/{name}.tsv").write_text("".join(lines))
    return tmp_path


COMMANDS = {"sorted lines": ["-t", "dev-0", "-l", "-s", "--output", "lines.txt"]}


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_texts_are_not_held(words, challenge, geval, monkeypatch):
    monkeypatch.setattr(files, "MAX_KEPT_BYTES", 1 << 20)
    assert geval("-t", "dev-0")[0] == 0  # which imports what is always needed
    tracemalloc.start()
    try:
        status, _, err = geval(*words)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (status, err) == (0, "")
    assert peak < (challenge / "dev-0/out.tsv").stat().st_size
