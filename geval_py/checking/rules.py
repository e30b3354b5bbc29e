"""The table of the checker's rules, and the values of a report: problems, and the report itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from geval_py.errors import DataError, UsageError
from geval_py.reading.outputs import READ_ENDINGS
from geval_py.scoring import kernel
from geval_py.tables.escapes import html_text
from geval_py.tables.table import Table, named_columns
from geval_py.text import counted, visible, words
from geval_py.version import __version__

Severity: TypeAlias = Literal["error", "warning"]

MAX_SHOWN = 10  # problems at Python's prompt


class Rule(NamedTuple):
    """A kind of problem.

    ``summary`` describes it in one line, ``why`` its consequence, ``fix`` the remedy. A line of word gaps breaks it
    if it ``has`` all of some flags and ``lacks`` others, or if it has the flag ``or_has``. ``fixable``: ``geval check
    --fix`` fixes it without guessing. ``needs_answers``: it can be found only with the answers.
    """

    code: str
    name: str
    summary: str
    why: str
    fix: str
    has: int = 0
    lacks: int = 0
    or_has: int = 0
    fixable: bool = False
    needs_answers: bool = False

    @property
    def severity(self) -> Severity:
        """Errors keep a submission from being scored; warnings do not."""
        return "error" if self.code.startswith("E") else "warning"

    def is_broken(self, flags: int) -> bool:
        """Whether a line of word gaps with these flags breaks the rule; a total that was only rounded is 1."""
        if flags & kernel.ROUNDED:
            flags &= ~(kernel.ABOVE_ONE | kernel.BELOW_ONE)
        return (flags & self.has == self.has and not flags & self.lacks) or bool(flags & self.or_has)


class Place(NamedTuple):
    """The place of a problem: line and column from 1 (the column in characters), the token there, the message.

    ``line`` 0 is the file as a whole. ``text`` is the whole line, to be shown with a caret; it may be "".
    """

    line: int
    column: int
    token: str
    message: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """The findings of a rule in a file: the number and the share of the lines, and the first places.

    ``fix`` is the remedy where it is another one than the rule's.
    """

    rule: Rule
    path: str
    count: int
    share: float
    summary: str
    places: tuple[Place, ...]
    fix: str = ""

    @property
    def is_error(self) -> bool:
        return self.rule.severity == "error"


RULES = (
    Rule(
        "E101", "missing-output", "there is no output, or it cannot be read",
        "GEval says `No file with the test results` and stops.",
        "Put the output in the test set's folder, as out.tsv or out-NAME.tsv, perhaps compressed: .gz, .xz, .bz2, "
        ".zst.",
    ),
    Rule(
        "E102", "empty-output", "the output has no lines",
        "GEval says `The output file is empty` and stops; in a compressed file it scores NaN.",
        "Run the model again; write one line for each line of in.tsv.",
    ),
    Rule(
        "E103", "too-few-lines", "the output has fewer lines than there are items",
        "GEval says `Too few lines in the output file` and stops.",
        "Write one line for each line of in.tsv. If you read in.tsv as CSV, give quoting=csv.QUOTE_NONE.",
    ),
    Rule(
        "E104", "too-many-lines", "the output has more lines than there are items",
        "GEval says `Too many lines in the output file` and stops.",
        "Write one line for each line of in.tsv, without a header and without a blank line at the end.",
    ),
    Rule(
        "E105", "corrupt-compression", "the compressed file is truncated, damaged or too large after unpacking",
        "GEval scores the readable part of a truncated .gz without a message. A line of more than 256 MB, "
        "compressed or not, is refused, because it would use too much memory.",
        "Compress it again, or upload it again.",
    ),
    Rule(
        "E106", "not-text", "the file is not UTF-8 text, so none of its lines can be read",
        "GEval says `Unexpected data` at line 1.",
        "Save it as UTF-8 text; in Python, open(path, \"w\", encoding=\"utf-8\", newline=\"\\n\").",
    ),
    Rule(
        "E108", "wrong-format", "the output is not in the format that its ending names",
        "Nothing is scored. The message `Cannot read` names the row.",
        "Fix this first: an output that is not TSV is checked only if all its rows can be read.",
    ),
    Rule(
        "E111", "empty-line", "a line is empty",
        "GEval says `Unexpected data [input does not start with a digit]` and stops.",
        "Write `:1` where there is no guess; do not write a blank line at the end.",
        has=kernel.EMPTY_LINE,
    ),
    Rule(
        "E112", "stray-space", "there is an extra space: at the beginning, at the end, or between entries",
        "GEval says `Unexpected data [colon expected]` and stops.",
        "Write exactly one space between entries, and none at the ends.",
        has=kernel.STRAY_SPACE, fixable=True,
    ),
    Rule(
        "E113", "no-colon", "an entry has no colon",
        "GEval reads a line without any colon as a vector of log probabilities. In other lines, it stops at an "
        "entry without a colon.",
        "Write `word:probability`, and leave out words that contain a space.",
        has=kernel.NO_COLON,
    ),
    Rule(
        "E114", "not-a-number", "what follows the last colon is not a number",
        "GEval says `Unexpected data` and stops.",
        "Correct the number as the message at each line says. A number is written as 0.25, -1.5 or 2.5e-3.",
        has=kernel.NOT_A_NUMBER,
    ),
    Rule(
        "E115", "wrong-vector-length", "a line without colons does not have one number per bucket",
        "GEval says `Unexpected data [unexpected number of log probs]` and stops.",
        "Write `word:probability` entries, or as many log probabilities as there are buckets (1024, or 256 for "
        "PerplexityHashed8).",
        has=kernel.WRONG_LENGTH,
    ),
    Rule(
        "E116", "number-too-large", "a number is too large for a double",
        "GEval reads it as infinity, and the score becomes Infinity or NaN.",
        "Look for an overflow in the model's code.",
        has=kernel.NUMBER_TOO_LARGE,
    ),
    Rule(
        "E117", "not-in-format", "a line is not in the metric's format, such as a number, a point or tags",
        "GEval says `Unexpected data` and stops.",
        "Correct each line as its message says. If config.txt names the metric of another task, correct --metric.",
    ),
    Rule(
        "E118", "no-spaces", "the entries of all lines are separated by another character than a space",
        "Only a space separates entries: GEval scores each line as one entry with a long word, which is never right.",
        "Separate entries by one space.",
        fixable=True,
    ),
    Rule(
        "E119", "no-probabilities", "most lines have numbers that are neither probabilities nor their logarithms",
        "GEval reads a line with a number outside [0,1] as logarithms, and normalises their exponentials. With the "
        "counts 120 and 60, the first word gets all the probability. A line that is the probability of a class is "
        "moved to 0 or 1. The score does not reflect your model.",
        "Write probabilities: divide counts by their sum and percentages by 100, and apply softmax to logits.",
        has=kernel.FAR_ABOVE_ONE, lacks=kernel.ALL_ZERO,
    ),
    Rule(
        "W107", "set-without-output", "a test set of the challenge has no output",
        "A board takes the submission, and it has no score for this test set.",
        "Write an output for it, or name the test sets to check with -t.",
    ),
    Rule(
        "W108", "lines-not-counted", "the number of lines is not known, so that too few or too many pass",
        "There is no in.tsv and no expected.tsv with which the output could be compared. Without either, give geval "
        "check the number of lines of a single output by --lines.",
        "Name the challenge's folder with --challenge, and the test set of an output with --test-name (-t).",
    ),
    Rule(
        "W201", "read-as-logs", "a number outside [0,1] makes GEval read the whole line as logarithms",
        "Every number of the line is then the logarithm of a probability: 0.5 counts as e^0.5, and all are rescaled.",
        "Write probabilities from 0 to 1. --fix fixes numbers that are outside this range by at most 1e-6.",
        has=kernel.LOOKS_LIKE_PROBABILITIES, lacks=kernel.FAR_ABOVE_ONE, fixable=True,
    ),
    Rule(
        "W202", "sum-above-one", "the probabilities sum to more than one, and rounding does not explain it",
        "GEval divides the line by its sum without a message. Rounding explains half a unit in the last place of "
        "each number with decimals, and 1e-8 for the sum.",
        "Divide by the sum before writing. If the numbers are 1 - p, write the probabilities p; if they are running "
        "totals, the differences.",
        has=kernel.ABOVE_ONE, lacks=kernel.LOGARITHMS | kernel.SEPARATOR,
    ),
    Rule(
        "W203", "sum-below-one", "the sum with the rest entry is less than one, and rounding does not explain it",
        "GEval divides the line by its sum without a message, so all entries get a proportional share of the "
        "missing probability. Rounding explains half a unit in the last place of each number with decimals, and "
        "1e-8 for the sum.",
        "If other words should get the missing probability, add it to the rest entry.",
        has=kernel.HAS_REST | kernel.BELOW_ONE, lacks=kernel.LOGARITHMS | kernel.SEPARATOR,
    ),
    Rule(
        "W204", "no-rest-mass", "no probability is left for other words",
        "A word that is not listed has the probability 0. If it is the answer, the loss of the line and the "
        "perplexity of the file are infinite. What rounding explains, as for W203, is not meant for other words.",
        "End the line with a small rest, such as `:0.01`; --fix --rest-mass 0.01 adds it.",
        lacks=kernel.HAS_REST | kernel.BELOW_ONE | kernel.MALFORMED | kernel.VECTOR | kernel.ALL_ZERO,
        or_has=kernel.ZERO_REST, fixable=True,
    ),
    Rule(
        "W205", "zero-read-as-certainty", "all values of the line are 0, which GEval reads as logarithms",
        "The logarithm 0 is the probability 1: `:0` gives all words the same probability, and `word:0` gives that "
        "word alone all of it.",
        "Write more digits if the numbers were rounded to 0, and write `:1` where there is no guess.",
        has=kernel.ALL_ZERO,
    ),
    Rule(
        "W206", "repeated-word", "a word occurs more than once on the line",
        "GEval adds the probabilities of its entries.",
        "Write each word once, with its total probability.",
        has=kernel.REPEATED,
    ),
    Rule(
        "W207", "zero-entry", "an entry has the probability 0",
        "The entry has no effect: its word gets a share of the rest, like any word that is not listed.",
        "Leave the entry out, or write more digits if the probability was rounded to 0.",
        has=kernel.ZERO_ENTRY, lacks=kernel.LOGARITHMS,
    ),
    Rule(
        "W208", "odd-character", "a word contains a TAB, a no-break space, a control character or a byte order mark",
        "The character is part of the word, so the word does not match the same word without it. pandas writes the "
        "index as a column: a number and a TAB.",
        "Use word.strip() in Python, and remove such characters inside words; write index=False in pandas' to_csv.",
    ),
    Rule(
        "W209", "wrong-separator", "two entries seem to be separated by a comma, a semicolon, a bar or a TAB",
        "Only a space separates entries: GEval reads both as one entry with a long word.",
        "Separate entries by one space. A line is the guess for one gap and has no columns.",
        has=kernel.SEPARATOR,
    ),
    Rule(
        "W210", "carriage-return", "lines contain carriage returns",
        "GEval removes them, wherever they occur.",
        "End lines with LF: newline=\"\\n\" in Python's open.",
        has=kernel.CARRIAGE_RETURN, fixable=True,
    ),
    Rule(
        "W211", "byte-order-mark", "the file begins with a byte order mark",
        "GEval reads it as part of the first word, which then never matches; geval-py removes it.",
        "Write UTF-8 without a byte order mark: encoding=\"utf-8\", not \"utf-8-sig\".",
        fixable=True,
    ),
    Rule(
        "W212", "not-utf-8", "the file contains bytes that are not UTF-8",
        "They are replaced by U+FFFD, so the words that contain them do not match.",
        "Write the file as UTF-8: open(path, \"w\", encoding=\"utf-8\") in Python.",
    ),
    Rule(
        "W214", "no-guess", "lines have only a rest",
        "All words have the same probability on such a line, so its loss is ln 1024.",
        "List at least the most frequent words, each with its relative frequency, a number from 0 to 1.",
        has=kernel.REST_ALONE,
    ),
    Rule(
        "W215", "header-as-data", "the first line is a header",
        "Unless the challenge has an out-header, GEval reads it as the first item, so all lines are shifted by one.",
        "Write the output without a header.",
    ),
    Rule(
        "W216", "cut-off", "the last line has no line end, and fewer entries than all others",
        "The file may have been cut off, as when a disk is full or a download ends too early.",
        "Write or copy it again, and compare the sizes.",
    ),
    Rule(
        "W217", "empty-text", "a line is empty, and the challenge's metric is not for word gaps",
        "It is scored as a line without words, classes or labels.",
        "Write a line for each item. Leave a line empty only if that is your answer.",
    ),
    Rule(
        "W219", "subword-marks", "many lines have words with marks of a subword tokenizer, as in `Ġthe` or `##ing`",
        "The mark is part of the word, so the word does not match the answer. A few such words are allowed, and so "
        "are marks that also occur in the training set.",
        "Join the tokens to words, and write the words without marks: tokenizer.decode(ids).strip() in transformers.",
    ),
    Rule(
        "W220", "special-token",
        "there is an entry for a special token or markup of a model, such as `<unk>`, `<think>` or `**`",
        "It is read as a word, so its probability is wasted. Tokens that also occur in the training set are allowed.",
        "Leave special tokens out, and add their probability to the rest.",
    ),
    Rule(
        "W222", "line-prefix", "each line begins with its number, as `3` or `H-3`, which the answers do not",
        "It is read as a part of the line: of its first word, of its label, or in place of its number. `grep -n`, "
        "`cat -n`, a table's index, fairseq and Kaldi write such beginnings.",
        "Write the guess alone on each line: `cut -f2-` keeps what follows the first TAB.",
    ),
    Rule(
        "W223", "base-two", "the numbers look like logarithms to base 2",
        "GEval reads them as natural logarithms. The probabilities then sum to less than 1, and are divided by "
        "their sum. A vector of them can even have a better score than it should.",
        "Multiply each number by 0.693147 (ln 2).",
    ),
    Rule(
        "W224", "wrong-number-of-tags", "a line has another number of tags than its answer",
        "The tags that are missing are wrong, even if the score does not show it: without its last tags, a line with "
        "all entities has the best BIO-F1. A model that cuts off long texts is a usual cause.",
        "Write a tag for each word of the text.",
        needs_answers=True,
    ),
    Rule(
        "W225", "unread-columns", "the answers have columns that the metric does not compare",
        "A metric of numbers, such as RMSE, reads each line up to the first TAB.",
        "Make a challenge of each column, or choose a metric that reads all.",
        needs_answers=True,
    ),
    Rule(
        "W301", "impossible-word", "the expected word has the probability 0, so the loss is infinite",
        "The mean loss and the perplexity of the whole file are infinite.",
        "End every line with a rest, such as `:0.01`.",
        needs_answers=True,
    ),
    Rule(
        "W302", "other-spelling", "answers are listed only in another spelling, such as another case or encoding",
        "Words are compared exactly: `caf\\xe9`, `cafe` and `Café` do not match `café`. The rule compares the first "
        "200 lines. A spelling that may be a word itself, as in another case, needs one line in twenty, because on "
        "fewer lines it happens to every model.",
        "Write words as in the answers.",
        needs_answers=True,
    ),
    Rule(
        "W303", "unknown-labels", "most lines have no label that occurs in the answers or in train",
        "Labels are compared exactly: `Noun`, `LABEL_0` and `noun,` do not match `noun`. The rule compares the first "
        "lines, if the labels are few.",
        "Write labels as the answers do, and nothing else on a line.",
    ),
    Rule(
        "W304", "worse-than-no-guess", "the score is worse than with `:1` (no guess) on each line",
        "With 1024 buckets, `:1` has a loss of ln 1024 and a perplexity of 1024. In other tasks, the score is worse "
        "by a tenth than with the most frequent answer on each line, or with the mean of numbers. The rule is "
        "checked only if there is no other problem of most lines.",
        "Write lines in the order of in.tsv, words as in expected.tsv, and more probability for the rest.",
        needs_answers=True,
    ),
    Rule(
        "W305", "misplaced-lines", "the lines fit other answers than theirs",
        "The first 100 lines are compared with their answers and with those of other lines: shifted by up to three "
        "lines, also from line 51, 101 or 151 on, in reverse order, with exchanged halves, in the order of 2, 4 or 8 "
        "workers. The rule is also broken by lines that repeat a batch, by one guess for all lines of a batch, by "
        "lines that are the answers themselves and, without answers too, by sorted lines.",
        "Write one line for each line of in.tsv, in the same order.",
        needs_answers=True,
    ),
    Rule(
        "W306", "other-line-numbers", "vectors fit other seeds of the hash than the line numbers",
        "The bucket of a word is its hash with the line's number as the seed, and lines are counted from 1. The "
        "rule compares the first lines.",
        "Hash the words of line n with the seed n, or write `word:probability` entries.",
        needs_answers=True,
    ),
)  # fmt: skip
COMMAND = "geval check"
READ_FORMATS = (  # the remedy for an output that cannot be read
    f"Fix the file, or write the output in another format. geval reads {READ_ENDINGS}, compressed or not, "
    "and geval convert writes TSV."
)
RULES_BY_CODE = {rule.code: rule for rule in RULES}
FLAG_RULES = tuple(rule for rule in RULES if rule.has or rule.lacks)
UNREADABLE = frozenset({"E101", "E105", "E106", "E108"})  # broken by a file that cannot be read


def find_rules(name: str, rules: Sequence[Rule] = RULES, command: str = COMMAND) -> list[Rule]:
    """Find rules of a table by a code, its beginning or a name.

    Raises UsageError, which names the command that lists them.
    """
    lower = name.strip().lower()
    matching = [rule for rule in rules if lower and (rule.code.lower().startswith(lower) or rule.name == lower)]
    if not matching:
        raise UsageError(f"there is no rule `{visible(name)}`\n  {command} --rules lists them")
    return matching


def select_rules(
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    rules: Sequence[Rule] = RULES,
    command: str = COMMAND,
) -> frozenset[str]:
    """Return the codes of the selected rules of a table (by default all) without the ignored ones.

    Both are named by their codes, names, or the beginnings of codes, such as E1. The rules of UNREADABLE are always
    selected, or an unreadable file would pass. Raises UsageError.

    >>> sorted(select_rules(["no-guess", "w3"], ignore=["E106", "W304"]))
    ['E101', 'E105', 'E106', 'E108', 'W214', 'W301', 'W302', 'W303', 'W305', 'W306']
    """

    def codes_of(names: Iterable[str]) -> set[str]:
        return {rule.code for name in names for rule in find_rules(name, rules, command)}

    all_codes = {rule.code for rule in rules}
    codes = all_codes if select is None else codes_of(select)
    return frozenset(codes - codes_of(ignore) | all_codes & UNREADABLE)


def file_problem(rule: Rule, path: str, message: str, fix: str = "") -> Problem:
    """Return a problem of a file as a whole."""
    return Problem(rule, path, 1, 1.0, message, (Place(0, 0, "", message),), fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of checking files.

    ``problems`` are in order of files, then of the table of rules. ``unreadable`` holds the errors of the test sets'
    files that could not be read; the rules that need them were not checked. ``notes`` say what is not known of the
    challenge. ``strict``: warnings too make the status 1. ``rules`` is the table of the rules that were checked,
    ``command`` the command that checked them.
    """

    version: str = __version__
    files: tuple[str, ...]
    problems: tuple[Problem, ...]
    unreadable: tuple[DataError, ...] = ()
    notes: tuple[str, ...] = ()
    strict: bool = False
    rules: tuple[Rule, ...] = RULES
    command: str = COMMAND

    @property
    def summary(self) -> str:
        """How many problems there are, in one line."""
        paths = {*self.files, *(problem.path for problem in self.problems)}
        errors = sum(problem.is_error for problem in self.problems)
        counts = f"{counted(errors, 'error')}, {counted(len(self.problems) - errors, 'warning')}"
        return f"{counts if self.problems else 'no problems'} in {counted(len(paths), 'file')}"

    def __repr__(self) -> str:
        shown = [
            f"\n  {problem.rule.code} {problem.rule.name}, {visible(problem.path)}: {visible(problem.summary)}"
            for problem in self.problems[:MAX_SHOWN]
        ]
        return f"<Report: {self.summary}{''.join(shown)}>"

    def table(self) -> Table:
        """Return a table with a row for each place of a problem."""
        rows = [
            (
                problem.path,
                place.line or None,
                place.column or None,
                *problem.rule[:2],
                problem.rule.severity,
                place.message,
            )
            for problem in self.problems
            for place in problem.places
        ]
        return Table(named_columns(words("path line column rule name severity message")), rows)

    def _repr_html_(self) -> str:
        """Show the table in Jupyter, and how many problems there are."""
        table = "".join(self.table().html()) if self.problems else ""
        return f"{table}<p>{html_text(self.summary)}</p>"

    @property
    def status(self) -> int:
        """The exit status: 1 if there is an error or, when strict, a warning; else 0."""
        return int(any(self.strict or problem.is_error for problem in self.problems))


def rules_table(rules: Sequence[Rule] = RULES) -> Table:
    """Return a table with a row for each rule."""
    rows = [(f"{rule.code} {rule.name}", "fixable" if rule.fixable else "", rule.summary) for rule in rules]
    return Table(named_columns(("rule", "", "what is wrong")), rows)


def explanation(rule: Rule) -> str:
    """Return the text of ``--explain`` for a rule."""
    lines = [f"{rule.code} {rule.name} ({rule.severity})", f"  {rule.summary}", "", rule.why, rule.fix]
    if rule.fixable and "--fix" not in rule.fix:
        lines.append("geval check --fix corrects it where there is only one possible correction.")
    if rule.needs_answers:
        lines.append("This rule needs the answers of the test set.")
    return "\n".join(lines)
