"""``geval check`` and scoring agree on which outputs can be scored: outputs of ten metrics, each broken in many ways."""

import gzip
import random

import pytest

from geval_py import GevalError, evaluate
from geval_py.checking.check import check

TASKS = {  # by metric: a right output line, another one, and the answer
    "PerplexityHashed": ("mule:0.5 salt:0.25 :0.25", "ferry:-1.25 mule:-0.5 :-2", "mule"),
    "LogLossHashed8": ("mule:0.5 salt:0.25 :0.25", " ".join(["-5.5"] * 256), "salt"),
    "LogLoss": ("mule:0.5 salt:0.5", "salt:0.9 mule:0.05 :0.05", "mule"), "Likelihood": ("0.75", "1 remark", "1"),
    "RMSE": ("1.5", "-0.25", "2"), "Haversine": ("52.25\t21.5", "-33.5\t151.25", "52.5\t21"),
    "BIO-F1": ("B-per I-per O B-loc", "O O B-loc O", "B-per I-per O B-loc"),
    "TokenAccuracy": ("N V A N", "N N N N", "N V A N"),
    "Probabilistic-MultiLabel-F1": ("news:0.5 sport:0.25", "sport:1.0", "news sport"),
    "Soft-F1": ("per:1-3 loc:5", "loc:7-9,11", "per:1-2 loc:5"),
}  # fmt: skip
LINES = 12
READ_OTHERWISE = {"E118", "E119"}  # outputs that GEval scores, but reads otherwise than their authors meant
WORDS = (
    "", " ", "\t", ":", "::", ":1", "x", "x:y", "x:nan", "x:inf", "x:1e999", "x:-1e999", "x:1_0", "x:0x1", "x:٣", "x:1,5",
    "x:-0", "x:+0.5", "x:.5", "x:5.", "x:1e5", "x:-2", "x:50%", "NaN", "inf", "1e999", "-1", "0", "1", "0.5", "1,5", "{}",
    "[0.5, 0.5]", '"x:1"', "O", "B-", "I-x", "per:0-1", "per:3-1", "per:1-99999999999999999999", "a=b", "\x00", "\xa0", "\ufeff",
)  # fmt: skip
MUTATIONS = {
    "nothing": lambda data: data, "empty": lambda data: b"", "a line end": lambda data: b"\n",
    "a line less": lambda data: data[data.index(b"\n") + 1 :],
    "a line more": lambda data: data + data[: data.index(b"\n") + 1], "an empty line": lambda data: data + b"\n",
    "an empty line first": lambda data: b"\n" + data, "no last line end": lambda data: data[:-1],
    "cut off": lambda data: data[:-5], "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "CR": lambda data: data.replace(b"\n", b"\r"), "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "Latin-1": lambda data: data.replace(b"e", b"\xe9").replace(b"O", b"\xd3"),
    "gzip": gzip.compress, "NUL": lambda data: data + b"\0", "TABs": lambda data: data.replace(b" ", b"\t"),
    "spaces": lambda data: data.replace(b"\t", b" "), "two spaces": lambda data: data.replace(b" ", b"  "),
    "a space at line ends": lambda data: data.replace(b"\n", b" \n"),
    "a space at line beginnings": lambda data: b" " + data, "a decimal comma": lambda data: data.replace(b".", b","),
    "no colons": lambda data: data.replace(b":", b" "), "equals signs": lambda data: data.replace(b":", b"="),
    "no numbers": lambda data: bytes(byte for byte in data if byte not in b"0123456789"),
    "no letters": lambda data: bytes(byte for byte in data if not bytes([byte]).isalpha()),
    "quotes": lambda data: b"".join(b'"%s"\n' % line for line in data.splitlines()),
    "a list": lambda data: b"[" + data.replace(b"\n", b",\n") + b"]\n", "capitals": lambda data: data.upper(),
    "a column of numbers": lambda data: b"".join(b"%d\t%s\n" % row for row in enumerate(data.splitlines())),
    "the answers": lambda data: None,
}  # fmt: skip


def mutants():
    """Each mutation of whole files; then words instead of a word, before it and behind it, at a place by chance."""
    for metric in TASKS:
        for name in MUTATIONS:
            yield metric, name, ""
    for word in WORDS:
        for number, metric in enumerate(TASKS):
            yield metric, ("replaced", "before", "behind", "alone")[(number + len(word)) % 4], word
    for word in WORDS[::4]:
        for metric in TASKS:
            yield metric, "glued", word


MUTANTS = list(mutants())


def mutated(metric, how, word):
    right, another, answer = TASKS[metric]
    lines = [another if n % 3 == 2 else right for n in range(LINES)]
    if how == "the answers":
        return f"{answer}\n".encode() * LINES
    if how in MUTATIONS:
        return MUTATIONS[how]("".join(f"{line}\n" for line in lines).encode())
    chance = random.Random(f"{metric} {how} {word}")
    line = chance.randrange(LINES)
    words = lines[line].split(" ")
    place = chance.randrange(len(words))
    words[place] = {
        "replaced": word,
        "before": f"{word} {words[place]}",
        "behind": f"{words[place]} {word}",
        "glued": f"{words[place]}{word}",
        "alone": word,
    }[how]
    lines[line] = word if how == "alone" else " ".join(words)
    return "".join(f"{line}\n" for line in lines).encode()


def refusals(folder, metric, output):
    """The errors of the checker, and the error of scoring, of an output."""
    (folder / "config.txt").write_text(f"--metric {metric}\n")
    (folder / "dev-0/in.tsv").write_text("x\n" * LINES)
    (folder / "dev-0/expected.tsv").write_text(f"{TASKS[metric][2]}\n" * LINES)
    (folder / "dev-0/out.tsv").write_bytes(output)
    errors = [problem for problem in check(folder).problems if problem.rule.severity == "error"]
    try:
        evaluate(folder, "dev-0")
    except GevalError as error:
        return errors, error
    return errors, None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", [pytest.param(n, marks=pytest.mark.long if n else ()) for n in range(8)])
def test_check_and_scoring_agree(part, tmp_path):
    (tmp_path / "dev-0").mkdir()
    disagreements = []
    for metric, how, word in MUTANTS[part::8]:
        errors, error = refusals(tmp_path, metric, mutated(metric, how, word))
        if any(problem.rule.code not in READ_OTHERWISE for problem in errors) != (error is not None):
            disagreements.append((metric, how, word, [problem.summary for problem in errors], str(error)))
    assert disagreements == []
