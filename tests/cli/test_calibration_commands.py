"""``geval calibration`` and ``geval luck``."""

import pytest

OUTPUTS = ["the:0.5 a:0.25 :0.25", "of:0.5 \x1b[31m:0.25 :0.25", "a:0.9 :0.1", ":1"]
WORDS = ["the", "and", "a", "of"]


@pytest.fixture
def challenge(tmp_path, monkeypatch):
    """A challenge of four items with one output and a vocabulary; the current directory."""
    (tmp_path / "config.txt").write_text("--metric Accuracy --metric PerplexityHashed --precision 2\n")
    for folder, name, lines in (("train", "expected.tsv", [*WORDS, "x"]), ("dev-0", "expected.tsv", WORDS), ("dev-0", "out.tsv", OUTPUTS)):  # fmt: skip
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_line(geval, challenge):
    for name in ("expected.tsv", "out.tsv"):
        path = challenge / "dev-0" / name
        path.write_text(path.read_text().splitlines()[0] + "\n")
    assert "\nout: PerplexityHashed, 1 line of dev-0\n" in geval("calibration", "-t", "dev-0")[1]
    (challenge / "dev-0/out-2.tsv").write_text(":1\n")
    assert " of 1 line of dev-0; the baseline is " in geval("compare", "-t", "dev-0", "-m", "PerplexityHashed")[1]


def test_luck_of_several_outputs_of_which_one_is_at_fault(geval, challenge):
    (challenge / "dev-0" / "out-bad.tsv").write_text("nothing\n" * 4)
    status, out, err = geval("luck", "-t", "dev-0", "--seeds", "2")
    assert status == 1
    assert err.startswith("geval: Line 1: Unexpected data [")
    assert [row.split()[0] for row in out.splitlines()[1:2]] == ["out"]


@pytest.mark.parametrize(("words", "status", "message"), [
    pytest.param(["calibration", "-t", "dev-0", "-m", "Accuracy"], 2,
        "this needs a metric on hashed words, such as PerplexityHashed, not Accuracy", id="exact"),
    pytest.param(["calibration", "-t", "dev-0", "-o", "dev-0/out.tsv", "-o", "dev-0/expected.tsv"], 2,
        "there are several outputs (out.tsv, expected.tsv): choose one with -o", id="several"),
    pytest.param(["luck", "-t", "dev-0", "--seeds", "1001"], 2, "the number of seeds is from 2 to 1000, not 1001",
        id="seeds"),
    pytest.param(["calibration", "-t", "dev-0", "-e", "train/expected.tsv"], 1,
        "Too few lines in the output file: `./dev-0/out.tsv` has 4, `train/expected.tsv` has 5\n"
        "  the number of lines is that of dev-0: is this its output?", id="lines"),
    pytest.param(["calibration", "--format", "xml"], 2,
        "argument --format: invalid choice: 'xml' (choose from 'text', 'json', 'csv', 'markdown', 'latex', 'html')\n"
        "  geval calibration --help shows the options", id="format"),
])  # fmt: skip
def test_what_is_refused(geval, challenge, words, status, message):
    assert geval(*words) == (status, "", f"geval: {message}\n")
