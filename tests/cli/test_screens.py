"""What commands show on terminals of 40, 80 and 120 columns, compared with ``tests/data/screens.txt``.

``python tests/cli/test_screens.py`` writes that file anew. Read what changed.
"""

import os
import pty
import random
import re
import subprocess
import sys
import termios
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from geval_py.text import display_width

FILE = Path(__file__).parents[1] / "data" / "screens.txt"
WIDTHS = (40, 80, 120)
COMMANDS = {
    "compare": "compare --samples 200",
    "board show": "board show board",
    "lines": "-t test-A -o out-model=bigram,smoothing=0.1,epochs=10,seed=1.tsv -l -s",
    "differences": "-t test-A -o out-model=unigram.tsv -d out-model=bigram,smoothing=0.2,epochs=10,seed=1.tsv",
    "worst features": "-t test-A -o out-model=unigram.tsv -w",
    "scores": "-t test-A -m LikelihoodHashed -m LogLossHashed8 -m LogLossHashed12 -m LogLossHashed16",
    "check": "check -t broken",
    "an error": "-t broken",
}
WORDS = ["the", "of", "house", "日本", "cafe\u0301", "👍"]
TEXT = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "the",
    "lazy",
    "dog",
    "while",
    "日本語の",
    "新聞",
    "reports",
    "naïve",
    "café",
    "prices",
    "and",
    "👍",
    "from",
    "the",
    "harbour",
    "a",
    "steamer",
    "came",
    "with",
    "flour",
    "and",
    "news",
    "of",
    "the",
    "war",
]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_challenge(folder):
    """Write a challenge with 24 lines, five outputs of long names and a broken one; and a board of it."""
    dice = random.Random(7)
    challenge = folder / "challenge"
    write(challenge / "README.md", ["Guess the word", "=============="])
    write(challenge / "config.txt", ["--metric PerplexityHashed -p 2 --in-header in-header.tsv"])
    write(challenge / "in-header.tsv", ["Source\tLeftContext\tRightContext"])
    for test in ("broken", "test-A"):
        cuts = [dice.randrange(2, len(TEXT) - 2) for _ in range(24)]
        rows = [f"page {n % 5}\t{' '.join(TEXT[:cut])}\t{' '.join(TEXT[cut:])}" for n, cut in enumerate(cuts)]
        write(challenge / test / "in.tsv", rows)
        expected = [dice.choice(WORDS) for _ in rows]
        write(challenge / test / "expected.tsv", expected)

    def output(skill):
        listed = (dict.fromkeys([dice.choice(WORDS), word]) for word in expected)
        masses = ([(word, dice.uniform(0.02, skill)) for word in line] for line in listed)
        return [" ".join(f"{word}:{mass:.3f}" for word, mass in line) + " :0.1" for line in masses]

    test_a = challenge / "test-A"
    names = ["model=unigram", *(f"model=bigram,smoothing={s},epochs=10,seed={n}" for s in (0.1, 0.2) for n in (1, 2))]
    for name in names:
        write(test_a / f"out-{name}.tsv", output(0.1 if name == "model=unigram" else 0.4))
    broken = output(0.4)
    broken[4] = f"日本語:0.2 {'house:0.001 ' * 30}the:0,5 {'of:0.001 ' * 9}:0.2"
    broken[7] = "the:0.5 of:0.4 house"
    write(challenge / "broken" / "out-model=bigram,smoothing=0.1.tsv", broken)
    return challenge


def write_board(challenge):
    run = ["board", "init", "board", "--challenge", ".", "--answers", "."]
    subprocess.run([*GEVAL, *run], cwd=challenge, check=True, capture_output=True)
    settings = challenge / "board" / "board.yaml"
    settings.write_text(settings.read_text().replace("submissions_a_day: 1\n", "submissions_a_day: 0\n"))
    for day, path in enumerate(sorted((challenge / "test-A").glob("out-*.tsv")), 1):
        name = f"group-of-the-university-of-{path.stem[10:].split(',')[0]}-{day}"
        write(challenge / "uploads" / name / "test-A" / "out.tsv", path.read_text(encoding="utf-8").splitlines())
        add = ["board", "add", "board", f"uploads/{name}", "--at", f"2025-01-2{day}T12:00:00Z"]
        subprocess.run([*GEVAL, *add], cwd=challenge, check=True, capture_output=True)


GEVAL = [sys.executable, "-m", "geval_py"]


def screen(words, columns, folder):
    """Run the command on a terminal of so many columns; return all that it writes there."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    run = subprocess.Popen(
        [*GEVAL, *words.split(" ")],
        cwd=folder,
        env=env | {"TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = read_terminal(ours)
    # An error says only that the terminal is closed: what was written last may still be on its way.
    # So read again when the process has ended.
    status = run.wait()
    written += read_terminal(ours)
    os.close(ours)
    assert status in (0, 1), f"status {status}, negative for a signal; it wrote: {written!r}"
    return written.decode("utf-8").replace("\r\n", "\n")


def read_terminal(ours):
    """Read until the terminal is closed, which Linux says by an error."""
    written = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            return written
        if not part:
            return written
        written += part


def sections():
    """Yield what is shown, by the command's name and the columns."""
    parts = re.split(r"(?m)^=== (.+) on (\d+) columns\n", FILE.read_text(encoding="utf-8"))
    return {(name, int(columns)): text for name, columns, text in zip(*(parts[n::3] for n in (1, 2, 3)), strict=True)}


@pytest.fixture(scope="module")
def challenge(tmp_path_factory):
    challenge = write_challenge(tmp_path_factory.mktemp("screens"))
    write_board(challenge)
    return challenge


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_screens(name, columns, challenge):
    shown = screen(COMMANDS[name], columns, challenge)
    assert shown == sections()[name, columns]
    assert max(map(display_width, shown.splitlines())) <= columns


def main():
    with TemporaryDirectory() as folder, FILE.open("w", encoding="utf-8", newline="\n") as file:
        challenge = write_challenge(Path(folder))
        write_board(challenge)
        for name, words in COMMANDS.items():
            for columns in WIDTHS:
                file.write(f"=== {name} on {columns} columns\n{screen(words, columns, challenge)}")


if __name__ == "__main__":
    main()
