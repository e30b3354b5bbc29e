"""A set as data: its items, their number, its table and outputs, and what is said when it is not there."""

import lzma
import subprocess
import sys

import pytest

from geval_py.errors import AmbiguousFileError, LineCountError, MissingFileError
from geval_py.reading.challenge import Challenge
from geval_py.reading.items import Item


@pytest.fixture
def challenge(tmp_path):
    """A challenge with an output in dev-0 and hidden answers in test-A."""
    tree = {
        "config.txt": "--metric LogLossHashed --in-header in-header.tsv --out-header out-header.tsv\n",
        "in-header.tsv": "Year\tLeft\n", "out-header.tsv": "Word\n",
        "train/in.tsv": "Year\tLeft\n1884\tOn\\nand\r\n1885\tof the\n",
        "train/expected.tsv": "Word\nafter\nsame\\n\n", "dev-0/in.tsv": "1886\ta\n", "dev-0/expected.tsv": "b\n",
        "dev-0/out-model=2.tsv": ":1\n", "dev-0/out-model=10.tsv": ":1\n",
        "test-A/in.tsv": "1887\tc\n1888\n\n1889\td\te\tf", "outputs/out.tsv": ":1\n",
    }  # fmt: skip
    for name, text in tree.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def items(challenge, name, **arguments):
    return list(Challenge.open(challenge)[name].items(**arguments))


TRAIN = [
    Item(1, {"Year": "1884", "Left": r"On\nand"}, "after"), Item(2, {"Year": "1885", "Left": "of the"}, r"same\n"),
]  # fmt: skip


def test_items(challenge):
    assert list(Challenge.open(challenge)) == ["dev-0", "test-A", "train"]
    assert list(Challenge.open(challenge)["train"]) == TRAIN
    first, second = items(challenge, "train", unescape=True)  # line ends are decoded in the input alone
    assert (first, second) == (Item(1, {"Year": "1884", "Left": "On\nand"}, "after"), TRAIN[1])


def test_a_compressed_set(challenge):
    for name in ("in.tsv", "expected.tsv"):
        path = challenge / "train" / name
        (challenge / "train" / f"{name}.xz").write_bytes(lzma.compress(path.read_bytes()))
        path.unlink()
    data = Challenge.open(challenge)["train"]
    assert (len(data), list(data)) == (2, TRAIN)
    (challenge / "train/in.tsv.gz").write_bytes(b"")
    with pytest.raises(AmbiguousFileError):
        Challenge.open(challenge)["train"]


def test_hidden_answers_and_lines_with_fewer_and_more_columns(challenge):
    assert items(challenge, "test-A") == [
        Item(1, {"Year": "1887", "Left": "c"}, None), Item(2, {"Year": "1888"}, None), Item(3, {"Year": ""}, None),
        Item(4, {"Year": "1889", "Left": "d", "3": "e", "4": "f"}, None),
    ]  # fmt: skip


def test_a_set_without_an_input(challenge):
    (challenge / "train/in.tsv").unlink()
    assert items(challenge, "train") == [Item(1, {}, "after"), Item(2, {}, r"same\n")]


def test_to_frame(challenge):
    frame = Challenge.open(challenge)["train"].to_frame()
    assert frame.to_dict("list") == {
        "line": [1, 2], "Year": ["1884", "1885"], "Left": [r"On\nand", "of the"], "expected": ["after", r"same\n"],
    }  # fmt: skip
    assert list(Challenge.open(challenge)["train"].to_frame(unescape=True)["Left"]) == ["On\nand", "of the"]


def test_to_frame_of_columns_called_like_others(challenge):
    (challenge / "in-header.tsv").write_text("line\texpected\n")
    frame = Challenge.open(challenge)["dev-0"].to_frame()
    assert list(frame) == ["line", "in<line>", "in<expected>", "expected"]
    for name in ("in", "expected"):
        (challenge / f"dev-0/{name}.tsv").write_text("")
    assert list(Challenge.open(challenge)["dev-0"].to_frame()) == ["line", "in<line>", "in<expected>", "expected"]


COUNTS = {"fewer inputs": ("1\n", "a\nb\nc\n", "few", 1, 3), "more inputs": ("1\n2\n3\n4\n", "a\nb\n", "many", 4, 2)}


@pytest.mark.parametrize(("inputs", "answers", "how", "lines", "wanted"), COUNTS.values(), ids=COUNTS)
def test_another_number_of_inputs_than_answers(challenge, inputs, answers, how, lines, wanted):
    (challenge / "dev-0/in.tsv").write_text(inputs)
    (challenge / "dev-0/expected.tsv").write_text(answers)
    found = []
    with pytest.raises(LineCountError) as caught:
        found.extend(Challenge.open(challenge)["dev-0"].items())
    message = f"Too {how} lines in the input file: `{challenge}/dev-0/in.tsv` has {lines}, "
    assert str(caught.value) == message + f"`{challenge}/dev-0/expected.tsv` has {wanted}"
    assert len(found) == min(lines, wanted)


@pytest.mark.parametrize("name", ["dev0", "xyz", "", "..", "dev-0/.", "config.txt"])
def test_a_set_that_is_not_there(challenge, name):
    with pytest.raises(MissingFileError) as caught:
        Challenge.open(challenge)[name]
    hint = "did you mean dev-0? " * name.startswith("dev") + "there are dev-0, test-A, train"
    assert str(caught.value) == f"No such set in the challenge: `{challenge}/{name}`\n  {hint}"
    (challenge / "empty").mkdir()
    with pytest.raises(MissingFileError, match=r"/train`\n  it has no sets$"):
        Challenge.open(challenge / "empty")["train"]


@pytest.mark.slow
def test_a_large_set_is_not_held_in_memory(challenge):
    """A set of 60 MB takes at most 16 MB more than one of two lines."""
    code = (
        "import lzma, resource, sys\n"
        "from geval_py import Challenge\n"
        "print(sum(1 for _ in Challenge.open(sys.argv[1])['train']), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def measure():
        run = subprocess.run(
            [sys.executable, "-I", "-c", code, challenge], capture_output=True, text=True, check=True
        )
        return tuple(map(int, run.stdout.split()))

    lines, small = measure()
    assert lines == 2
    with lzma.open(challenge / "train/in.tsv.xz", "wb", preset=0) as file:
        for _ in range(60):
            file.write(b"1884\t" + b"a" * 994 + b"\n" + b"".join(b"1885\t%994d\n" % n for n in range(999)))
    (challenge / "train/in.tsv").unlink()
    (challenge / "train/expected.tsv").write_text("the\n" * 60_000)
    lines, large = measure()
    assert lines == 60_000
    unit = 1 if sys.platform == "darwin" else 1024
    assert (large - small) * unit < 16 << 20
