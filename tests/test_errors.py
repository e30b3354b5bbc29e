"""Errors: their sentences to the letter, their tree, and text that is safe to show."""

import ast
import copy
import inspect
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import geval_py
from geval_py import errors
from geval_py.cli.commands import parser_of
from geval_py.errors import (
    AmbiguousFileError,
    ClusterError,
    ConfigError,
    CorruptFileError,
    DataError,
    EmptyFileError,
    ExistingFileError,
    FailedError,
    GevalError,
    LineCountError,
    MalformedLineError,
    MissingFileError,
    MissingPackageError,
    ModelError,
    ReasonError,
    RejectedError,
    SchemeError,
    SubmissionError,
    TooLargeError,
    UnreadableFileError,
    UnsupportedEncodingError,
    UsageError,
)
from geval_py.reading.config import OPTIONS, said_option
from geval_py.text import SPACES, display_width, excerpt, shorten, strip_spaces, visible, without_credentials

PROPERTY = settings(deadline=None, derandomize=True)

VISIBLE = {
    "New York": "New York", "żółw 水": "żółw 水", "e\u0301": "e\u0301", "a\x1b[31mb": r"a\x1b[31mb", "a\tb": r"a\tb",
    "a\nb": r"a\nb", "a\rb": r"a\rb", "a\0b": r"a\x00b", "a\x7fb": r"a\x7fb", "a\x9bb": r"a\x9bb",
    "a\u202eb": r"a\u202eb", "a\u2068b\u2069": r"a\u2068b\u2069", "a\u200bb": r"a\u200bb", "\ufeffa": r"\ufeffa",
    "a\u00a0b": r"a\xa0b", "a\u2028b": r"a\u2028b", "a\U000e0041b": r"a\U000e0041b", "a\udcffb": r"a\udcffb",
}  # fmt: skip


@PROPERTY
@given(st.text(st.characters()))
def test_no_byte_of_a_message_may_move_the_cursor_change_a_colour_or_reverse_the_line(text):
    assert visible(text).isprintable()


WIDTHS = {
    "": 0, "the": 3, "żółw": 4, "e\u0301": 1, "水": 2, "Ａ": 2, "ｱ": 1, "🙂": 2, "水e\u0301x": 4,
}  # fmt: skip
SHORTENED = {
    "": "", "the": "the", "x" * 40: "x" * 40, "a" * 20 + "b" * 21: "a" * 20 + "…" + "b" * 19,
    "0123456789" * 10: "01234567890123456789…1234567890123456789",
}  # fmt: skip
ADDRESSES = {
    "sftp://me:p@ss@host/a.tsv": "sftp://host/a.tsv",
    "s3://a@one/x and s3://b:c@two/y": "s3://one/x and s3://two/y",
    "s3://runs/me@home.tsv": "s3://runs/me@home.tsv",
    "me:secret@host": "me:secret@host",  # no address
}


@pytest.mark.parametrize(("function", "table"), [
    (visible, VISIBLE), (display_width, WIDTHS), (shorten, SHORTENED), (without_credentials, ADDRESSES),
])  # fmt: skip
def test_texts_in_messages(function, table):
    assert {text: function(text) for text in table} == table


@PROPERTY
@given(
    st.text(
        st.one_of(
            st.sampled_from(" \t\v\r\x1c\x85\u00a0\u1680\u180e\u2000\u200a\u200b\u2028\u202f\u205f\u3000"),
            st.characters(),
        )
    )
)
def test_white_space_is_that_of_haskell(text):
    """Data.Text.strip, of GEval 1.42.2, leaves U+001C, U+0085 and U+2028."""
    assert strip_spaces(text) == re.sub(f"^[{SPACES}]+|[{SPACES}]+\\Z", "", text)


EXCERPTS = {
    "first column": (("the:x", 1), "the:x\n^"), "after the end": (("the:", 5), "the:\n    ^"),
    "empty line": (("", 1), "\n^"), "wide before": (("水水:x", 4), "水水:x\n     ^"),
    "escape before": (("\x1b[1m:x", 6), "\\x1b[1m:x\n        ^"),
    "bidi before": (("\u202eab:x", 5), "\\u202eab:x\n         ^"),
    "long, cut in front": (("x" * 80, 40), "…" + "x" * 76 + "…\n" + " " * 39 + "^"),
    "long, in the middle": (("a" * 100 + "!" + "b" * 100, 101),
        "…" + "a" * 38 + "!" + "b" * 37 + "…\n" + " " * 39 + "^"),
    "long, at the end": (("a" * 100 + "!", 101), "…" + "a" * 38 + "!\n" + " " * 39 + "^"),
    "another width": (("abcdefghij", 6, 4), "…defg…\n   ^"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "picture"), EXCERPTS.values(), ids=EXCERPTS)
def test_excerpt(arguments, picture):
    assert excerpt(*arguments) == picture


@PROPERTY
@given(st.text(st.characters(max_codepoint=0x17F), min_size=1), st.data())
@example("\x1b" * 200, None)
def test_the_caret_is_under_the_column(text, data):
    column = data.draw(st.integers(1, len(text))) if data else len(text)
    line, below = excerpt(text, column).split("\n")
    assert set(below[:-1]) <= {" "}
    assert below[-1] == "^"
    assert line[len(below) - 1 :].startswith(visible(text[column - 1]))


BAD_NAME = "a\x1b[2J/\u202eout.tsv"
SAFE_NAME = r"a\x1b[2J/\u202eout.tsv"
MALFORMED = {
    "line": 7, "column": 12, "reason": "number text found after a number", "token": "0,25",
    "hint": "`0,25` is not a number; write a decimal point, not a comma", "text": "the:0.5 of:0,25 :0.25",
}  # fmt: skip

OF_LINE = """\
Line 7: Unexpected data [number text found after a number]
  {}line 7, column 12: `0,25` is not a number; write a decimal point, not a comma
    the:0.5 of:0,25 :0.25
               ^"""
ERRORS = {  # one or more of each class, with its sentence
    **{cls.__name__: (cls("it is a link", aside="of a stranger"), "it is a link")
        for cls in (ReasonError, SubmissionError, RejectedError, FailedError)},
    "the root": (GevalError(), ""), "usage": (UsageError("take one"), "take one"),
    "missing package": (MissingPackageError("Parquet is read by pyarrow: pip install pyarrow", package="pyarrow"),
        "Parquet is read by pyarrow: pip install pyarrow"),
    "scheme": (SchemeError("Unknown or broken metric flags: z", scheme="LogLossHashed:z"),
        "Unknown or broken metric flags: z"),
    "scheme of an output": (SchemeError("No item has the feature `out:x'", scheme="LogLoss:f<out:x>", path=BAD_NAME),
        f"No item has the feature `out:x'\n  in `{SAFE_NAME}`"),
    "data": (DataError(path="dev-0"), ""),
    "missing": (MissingFileError(what="No file with the test results", path=BAD_NAME),
        f"No file with the test results: `{SAFE_NAME}`"),
    "unreadable": (UnreadableFileError(path=BAD_NAME, reason="Permission\x1b denied"),
        f"Cannot read `{SAFE_NAME}`: Permission\\x1b denied"),
    "in another encoding": (UnsupportedEncodingError(path="o", reason="it is UTF-16"),
        "Line 1: Unexpected data in `o`: it is UTF-16"),
    "corrupt": (CorruptFileError(path=BAD_NAME, compression="gzip", reason="it ends before its end mark"),
        f"Corrupt gzip file `{SAFE_NAME}`: it ends before its end mark\n"
        "  write it again, or upload it again: a part of it may be missing"),
    "too large a line": (TooLargeError(path=BAD_NAME, max_bytes=5, what="line"),
        f"Too large: `{SAFE_NAME}`: it has a line of more than 5 bytes"),
    "a model": (ModelError(path=BAD_NAME, message="the text is empty"), f"the text is empty\n  in `{SAFE_NAME}`"),
    "ambiguous": (AmbiguousFileError(path=BAD_NAME, candidates=(BAD_NAME + ".xz", BAD_NAME + ".gz"),
        newest=BAD_NAME + ".gz"),
        f"More than one file could be `{SAFE_NAME}`: `{SAFE_NAME}.xz` and `{SAFE_NAME}.gz`\n"
        f"  remove all but one; `{SAFE_NAME}.gz` is the newest"),
    "a cluster": (ClusterError(address=BAD_NAME, reason="it went away"),
        f"The cluster at `{SAFE_NAME}`: it went away"),
    "config": (ConfigError(path=BAD_NAME, message="Invalid option `--metrics'\n  did you mean --metric?"),
        f"Invalid option `--metrics'\n  did you mean --metric?\n  in `{SAFE_NAME}`"),
    "files that are there": (ExistingFileError(path="a", others=(BAD_NAME, "b")),
        f"File already there: `a`\n  and `{SAFE_NAME}`, `b`"),
    "empty": (EmptyFileError(what="output", path=BAD_NAME), f"The output file is empty: `{SAFE_NAME}`"),
    "too few lines": (LineCountError(what="output", path=BAD_NAME, lines=2, expected_path="e\n", expected_lines=3),
        f"Too few lines in the output file: `{SAFE_NAME}` has 2, `e\\n` has 3"),
    "malformed line without a path": (MalformedLineError(role="expected", **MALFORMED), OF_LINE.format("")),
    "malformed line, prepared": (MalformedLineError(path="out.tsv", prepared_by="ls<\x1b><b>", **MALFORMED),
        OF_LINE.format("`out.tsv`, ") + "\n  (the line is shown as the flags `ls<\\x1b><b>` left it)"),
    "malformed line, for two of three metrics": (
     MalformedLineError(path="out.tsv", metrics=("RMSE", "MSE:N<\x1b>"), **MALFORMED),
     OF_LINE.format("`out.tsv`, ") + "\n  RMSE and MSE:N<\\x1b> cannot read the line"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "sentence"), ERRORS.values(), ids=ERRORS)
def test_an_error(error, sentence):
    assert str(error) == sentence
    assert error.exit_status == (2 if isinstance(error, UsageError) and not getattr(error, "path", "") else 1)
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(copied), str(copied), vars(copied)) == (type(error), sentence, vars(error))


def subclasses(cls):
    """The tree in geval_py.errors."""
    here = (child for child in cls.__subclasses__() if child.__module__ == errors.__name__)
    return {cls}.union(*map(subclasses, here))


def test_every_class_has_its_sentence_here_and_those_to_catch_are_public():
    assert {type(error) for error, _ in ERRORS.values()} == subclasses(GevalError)
    public = {cls for cls in subclasses(GevalError) if cls.__name__ in geval_py.__all__}
    assert public == {GevalError, UsageError, DataError, MalformedLineError}


def named_arguments():
    for path in Path(geval_py.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "arguments":
                leaves = (leaf for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant))
                yield from (leaf.value for leaf in leaves if isinstance(leaf.value, str))


@pytest.mark.slow
def test_each_argument_that_an_error_names_is_one_in_python_and_an_option():
    called = [value for name in geval_py.__all__ if inspect.isfunction(value := getattr(geval_py, name))]
    called += [value for _, value in inspect.getmembers(geval_py.Evaluation, inspect.isfunction)]
    known = {name for function in called for name in inspect.signature(function).parameters}
    named = set(named_arguments())
    assert {"metric", "min_frequency", "output", "test"} <= named <= known
    options = {name for option in OPTIONS.values() for name in option.names}
    pages = "".join(parser_of(command).format_help() for command in ("tune", "compare"))
    of_commands = set(re.findall(r"--[a-z-]+", pages))
    assert {said_option(name).split()[0] for name in named} <= options | of_commands


SAID = {
    "one": (UsageError("use", arguments=("output",)), "use output=…", "use -o"),
    "none": (UsageError("use {out}"), "use {out}", "use {out}"),
    "GEval 1.42.2's words": (
        UsageError("no metric given, use", arguments=("metric",)),
        "no metric given, use metric=…",
        "no metric given, use --metric option\n  for example -m PerplexityHashed; or run geval in the folder of the challenge's config.txt, or name it with --challenge",
    ),
    "of a scheme": (SchemeError("use", scheme="x", arguments=("output",)), "use output=…", "use -o"),
    "in a hint": (MissingFileError(what="No file", path="x", hint="choose one with", arguments=("test",)),
        "No file: `x`\n  choose one with test=…", "No file: `x`\n  choose one with -t"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "in_python", "on_the_command_line"), SAID.values(), ids=SAID)
def test_python_speaks_of_arguments_and_the_command_line_of_options(error, in_python, on_the_command_line):
    assert str(error) == in_python
    assert error.sentence(said_option) == on_the_command_line
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.sentence(said_option)) == (in_python, on_the_command_line)
