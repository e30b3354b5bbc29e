"""Outputs made up by Hypothesis, their answers, and all that is said of them: the same, whoever reads them."""

from array import array

from hypothesis import strategies as st

from geval_py.errors import GevalError
from geval_py.reading.config import Task
from geval_py.reading.files import File
from geval_py.reading.lines import count_lines
from geval_py.reading.outputs import output_at
from geval_py.reading.splits import Split
from geval_py.scoring.evaluate import evaluate_output, select_schemes

GOOD = [b"a:0.5 :0.5", b"the:0.9 of:0.05 :0.05", b":1", "żółw:0.25 :0.75".encode(), b"a:-1 b:-2\r", b"a:1"]
BAD = [b"", b"a", b"a:x", b"\r", b"a:0.5  b:1", b"\xef\xbb\xbf:1"]
WORDS = [b"a", b"the", "żółw".encode(), b"x\r", b""]


def long_line(words, seed, end):
    """A line of so many words, the last of which may be malformed."""
    entries = (b"%d:%r" % (seed + n, 1 / (n + seed % 97 + 2)) for n in range(words))
    return b" ".join([*entries, end])


good_lines = st.sampled_from(GOOD)
long_lines = st.builds(
    long_line, st.integers(100, 600), st.integers(0, 1 << 40), st.sampled_from([b":0.5", b"the:1"])
)
long_bad_lines = st.builds(long_line, st.integers(100, 600), st.integers(0, 1 << 40), st.just(b"the:x"))


def files_of(good, bad, most):
    """A byte order mark, a header, lines that are good, or nearly all good, and the end, each if any."""
    return st.tuples(
        st.sampled_from([b"", b"\xef\xbb\xbf"]),
        st.sampled_from([b"", b"Word\tmore\n", b"Word\r\n"]),
        st.one_of(st.lists(good, max_size=most), st.lists(st.one_of(*[good] * 5, bad), max_size=most)),
        st.sampled_from([b"", b"\n", b"\n", b"\r", b"\n\n", b"\n\r\r"]),
    ).map(lambda file: file[0] + file[1] + b"\n".join(file[2]) + file[3])


files = files_of(good_lines, st.sampled_from(BAD), 20)
long_files = files_of(st.one_of(good_lines, long_lines), st.one_of(st.sampled_from(BAD), long_bad_lines), 12)
differences = st.sampled_from([0, 0, 0, 0, -2, -1, 1, 3])  # of the numbers of lines of answers and output


def split_of(folder, output="out.tsv"):
    """An output in a folder, and its answers."""
    return Split(
        name="t", expected=File(str(folder / "expected.tsv")), outputs=(output_at(str(folder / output)),), input=None,
        in_header=(), out_header=("Word",),
    )  # fmt: skip


def write(folder, output, difference=0):
    """Write an output and answers, so many more or less; gives their split."""
    (folder / "out.tsv").write_bytes(output)
    number = max(count_lines(File(str(folder / "out.tsv")), header="Word") + difference, 0)
    (folder / "expected.tsv").write_bytes(b"".join(WORDS[n % len(WORDS)] + b"\n" for n in range(number)))
    return split_of(folder)


def result(split, metrics, **keywords):
    """All that an evaluation says, or the sentence of its error."""
    schemes = select_schemes(Task(metrics=metrics))
    try:
        found = evaluate_output(split, split.outputs[0], schemes, frozenset(), **keywords)
    except GevalError as error:
        return type(error), str(error), getattr(error, "line", None)
    return (
        found.signature, [(score.name, score.value, score.statistics) for score in found.scores],
        array("d", found.line_losses).tobytes(), [item.output for item in found.read_items()],
    )  # fmt: skip
