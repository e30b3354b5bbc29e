"""board.yaml, the settings of a board; all errors in it are reported at once, with their lines.

    title: Gazette
    challenge: ../gazette          # folders are relative to board.yaml
    answers: ../answers            # with test-A/expected.tsv
    metric: PerplexityHashed
    tests:
      test-A: {disclosed: 4}
    phases:
      - {name: main, until: 2027-01-31T23:59:00+01:00}
    server:
      upload: 200_000_000
      open: [uni.example]          # whose addresses may make accounts; "*": all
      sign_in:
        - {name: GitLab, issuer: "https://gitlab.com", client: 0f1e2d, secret: GEVAL_GITLAB_SECRET}

The fields of :class:`BoardSettings`, :class:`Test`, :class:`Phase`, :class:`Limits` and :class:`ServerSettings` are
all keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from geval_py.board import strict_yaml
from geval_py.board.intake.sources import MAX_BYTES, MAX_FILES
from geval_py.errors import ConfigError, SchemeError
from geval_py.reading.config import DEFAULT_SAMPLES, DEFAULT_SEED
from geval_py.reading.files import naming
from geval_py.reading.schemes import parse_schemes
from geval_py.scoring.evaluate import find_metric
from geval_py.scoring.metrics.base import Metric
from geval_py.text import visible

BEST: Final = "best"
ALL: Final = "all"
AFTER = "post-deadline"  # the phase after the last deadline
PUBLIC, PRIVATE = "public", "private"  # the parts of a test that is split
MAX_DIGITS, MAX_NUMBER = 15, 10**15
VARIANTS = 5  # the default number of outputs for one test
DIGITS = 4  # the default number of significant digits of a score
STEP = 0.1  # nats: 10 % of a perplexity
_MOMENTS = "2027-01-31T23:59:00+01:00, 2027-01-31T22:59:00Z or 2027-01-31 23:59 Europe/Warsaw"


def _metric(written: str) -> str:
    try:
        schemes = parse_schemes(written)
    except SchemeError as error:
        raise ValueError(f"is not a metric: {str(error).partition(chr(10))[0]}") from error
    if len(schemes) != 1:
        raise ValueError("names several metrics; list the others in `also`")
    return written


def moment_of(written: str) -> datetime:
    """Parse a moment with its zone, and convert it to UTC; the text of a ValueError shows three correct forms."""
    day, _, zone = written.strip().rpartition(" ")
    is_named = "/" in zone or zone == "UTC"
    with suppress(LookupError, OSError, ValueError, OverflowError):
        moment = datetime.fromisoformat(day if is_named else written.strip())
        if is_named == (moment.tzinfo is None):
            return (moment.replace(tzinfo=ZoneInfo(zone)) if is_named else moment).astimezone(UTC)
    raise ValueError(f"`{visible(written)}` is not a time with one time zone; write it as {_MOMENTS}")


def moment_text(moment: datetime) -> str:
    """Write a moment in UTC, to the second: 2027-01-31T22:59:00Z."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _share(written: str) -> float:
    """Read a percentage, such as 30 %."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", written)
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share < 1:
        raise ValueError("must be a percentage between 0 % and 100 %, such as 30 %")
    return share


WrittenMetric: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_metric)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Natural: TypeAlias = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
Significant: TypeAlias = Annotated[int, Field(ge=0, le=MAX_DIGITS)]
Rows: TypeAlias = Literal["best", "all"]


def _test_name(name: str) -> str:
    if os.path.basename(name) != name or name.startswith("."):
        raise ValueError(f"`{visible(name)}` is not a name of a test set")
    return name


@dataclass(frozen=True, kw_only=True)
class Test:
    """A test set that submissions are scored on.

    If ``visible``, its answers are public, and pages may show its lines. ``disclosed`` is the number of significant
    digits of public scores until the last deadline (0 hides them), ``disclosed_after`` the number from then on. With
    a ``ladder``, a submitter's public score changes only when it is significantly better, and by at least ``step``
    nats of the mean loss. ``show`` is "best" or "all": which of a submission's variants have public scores.

    ``split`` is the share of the lines in the public part of a hidden test, 0 if it has no parts. Lines with the same
    value in the column ``documents`` of the input are in the same part, and intervals and tests are by document; ""
    is the column that the challenge declares, or one with a usual name.
    """

    __test__ = False  # pytest: this is no test of ours

    name: Annotated[Text, AfterValidator(_test_name)]
    visible: bool = False
    disclosed: Significant = DIGITS
    disclosed_after: Significant | None = None
    ladder: bool = False
    step: Annotated[float, Field(ge=0, allow_inf_nan=False)] = STEP
    show: Rows | None = None
    split: Annotated[float, BeforeValidator(_share)] = 0.0
    documents: str = ""

    @property
    def final_digits(self) -> int:
        """The number of significant digits after the last deadline; by default as before it, 4 if that is 0."""
        return (self.disclosed or DIGITS) if self.disclosed_after is None else self.disclosed_after

    @property
    def shows_all(self) -> bool:
        """Whether all outputs of a submission have public scores, by default those for public answers."""
        return self.show == ALL or (self.visible and self.show is None)


class Digits(NamedTuple):
    """The numbers of significant digits of scores and of the ends of their intervals; 0 hides them."""

    score: int
    ends: int


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A period whose submissions are ranked together, up to and including the moment ``until``.

    It ranks the named ``tests``, all without any. The other fields replace those of the board and of its tests for
    submissions that arrive in this phase; None leaves them as they are.
    """

    name: Text
    until: Annotated[datetime, PlainValidator(moment_of)]
    tests: tuple[str, ...] = ()
    submissions_a_day: Natural | None = None
    disclosed: Significant | None = None
    ladder: bool | None = None
    variants: Positive | None = None


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one submission: unpacked bytes of all files; members of an archive; seconds; bytes of memory.

    ``listed`` is the number of entries that its folder or its repository may have, whether they are taken or not.
    """

    bytes: Positive = MAX_BYTES
    files: Positive = MAX_FILES
    listed: Positive = 10_000
    seconds: Positive = 60
    memory: Positive = 4_000_000_000


# The server: how much is taken, who else may sign in, what is told to whom


OPENID: Final = "openid"
GITHUB: Final = "github"
ANYBODY = "*"


def _matching(pattern: str, wrong: str, change: Callable[[str], str] = str) -> AfterValidator:
    """Return a check of a text: after a ``change``, a pattern matches it as a whole; ``wrong`` says what it is."""

    def check(written: str) -> str:
        value = change(written)
        if re.fullmatch(pattern, value) is None:
            raise ValueError(wrong)
        return value

    return AfterValidator(check)


# An address of a provider is https or, on this machine alone, http.
_SITE = _matching(
    r"(https://[\w.-]+|http://(localhost|127\.0\.0\.1))(:\d+)?(/[\w.~/-]*)?",
    "must be the address of a provider, such as https://gitlab.com",
    lambda address: address.rstrip("/"),
)
_VARIABLE = _matching("[A-Z_][A-Z0-9_]*", "must name an environment variable, such as GEVAL_GITLAB_SECRET")
_ADDRESS = _matching(r"(?a)[\w.+-]+@[\w.-]+", "must be an e-mail address")
_DOMAIN = _matching(
    r"\*|[a-z0-9-]+(\.[a-z0-9-]+)+",
    "must list domains of e-mail addresses, such as uni.example, or '*' for all",
    str.lower,
)


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A site that says who somebody is: of OpenID Connect by its ``issuer``, or GitHub.

    ``client`` is the server's name there; ``secret`` is the environment variable with the client's secret.
    """

    name: Text
    issuer: Annotated[str, _SITE]
    client: Text
    secret: Annotated[str, _VARIABLE]
    kind: Literal["openid", "github"] = OPENID

    @property
    def slug(self) -> str:
        """The name in addresses.

        >>> Provider(name="Our GitLab", issuer="https://gitlab.com", client="x", secret="Y").slug
        'our-gitlab'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def _distinct(providers: tuple[Provider, ...]) -> tuple[Provider, ...]:
    slugs = {provider.slug for provider in providers}
    if len(slugs) < len(providers) or "" in slugs:
        raise ValueError("must give each provider a different name, with a letter or digit from a to z or 0 to 9")
    return providers


@dataclass(frozen=True, kw_only=True)
class Mail:
    """A server that takes mail; ``password`` is an environment variable. Without ``tls`` it must be trusted."""

    host: Text
    sender: Annotated[str, _ADDRESS]
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    user: str = ""
    password: Annotated[str, _VARIABLE] = ""
    tls: bool = True


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The settings of a board's server: the most bytes of an upload, and the most uploads of a team in an hour.

    Accounts are told by ``mail`` what became of their uploads. Accounts of the providers ``sign_in`` may sign in. Who
    has no account and no invitation makes one if the domain of their e-mail address is in ``open``.
    """

    upload: Positive = 200_000_000
    uploads_an_hour: Positive = 60
    sign_in: Annotated[tuple[Provider, ...], AfterValidator(_distinct)] = ()
    open: tuple[Annotated[str, _DOMAIN], ...] = ()
    mail: Mail | None = None

    def is_open_to(self, email: str) -> bool:
        """Whether an address that a provider has verified may make an account.

        >>> ServerSettings(open=("uni.example",)).is_open_to("anna@Uni.example")
        True
        """
        return bool(email) and not {ANYBODY, email.rpartition("@")[2].lower()}.isdisjoint(self.open)


# The board


def _named_tests(written: Any) -> Any:
    """Return a list of the tests, which have their names."""
    if not isinstance(written, dict) or not written:
        raise ValueError("must name the test sets: test-A: {disclosed: 4}")
    tests = [values or strict_yaml.Keys() for values in written.values()]
    for name, values in zip(written, tests, strict=True):
        if isinstance(values, dict):
            values["name"] = name
    return tests


def _checked_test(test: Test) -> Test:
    if test.split and test.visible:
        raise ValueError("`split` is for hidden answers: leave out `split` or `visible`")
    return test


@dataclass(frozen=True, kw_only=True)
class BoardSettings:
    """The settings in board.yaml; folders are absolute.

    ``metric`` ranks, the metrics ``also`` are shown beside it; the first of ``tests`` is ranked by default. The days
    of ``submissions_a_day`` (0: no quota) begin at midnight in ``zone``. At most ``variants`` outputs of a submission
    are for one test. ``entries`` is "best" or "all": a submitter has the best entry, or one for each submission.
    ``transports`` are those by which git may fetch. ``submit`` and ``cite`` are Markdown for the site's pages: where
    to send submissions, and how to cite.

    A server shows its pages to "all", or to "members" who are signed in. With "pseudonyms", pages show teams by names
    that nobody can compute from the real ones.

    By the private parts of tests, at most ``finals`` submissions of a submitter are ranked, which are those that it
    names; 0: all are.

    A phase may have its own tests, quota and so on: :meth:`in_phase` returns the settings that hold in it.
    """

    title: Text
    challenge: Text
    answers: Text
    database: Text = "board.sqlite"
    accounts: str = ""
    metric: WrittenMetric
    also: tuple[WrittenMetric, ...] = ()
    tests: Annotated[tuple[Annotated[Test, AfterValidator(_checked_test)], ...], BeforeValidator(_named_tests)]
    phases: tuple[Phase, ...] = ()
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    submissions_a_day: Natural = 0
    variants: Positive = VARIANTS
    finals: Natural = 0
    entries: Rows = BEST
    seed: Natural = DEFAULT_SEED
    samples: Positive = DEFAULT_SAMPLES
    transports: tuple[Literal["https", "ssh", "git", "http", "file"], ...] = ("https",)
    limits: Limits = Limits()
    access: Literal["all", "members"] = "all"
    names: Literal["real", "pseudonyms"] = "real"
    url: str = ""
    submit: str = ""
    cite: str = ""
    server: ServerSettings = ServerSettings()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics; the ranking one is the first."""
        return (self.metric, *self.also)

    def test(self, name: str) -> Test | None:
        """Return a test by its name, or None."""
        return next((test for test in self.tests if test.name == name), None)

    def phase_of(self, moment: datetime) -> str:
        """Return the name of the phase at a moment; "" without phases."""
        if not self.phases:
            return ""
        return next((phase.name for phase in self.phases if moment <= phase.until), AFTER)

    def in_phase(self, name: str) -> BoardSettings:
        """Return the settings for the submissions of a phase; ``tests`` are those that it ranks.

        Digits that are shown before the last deadline stay after it.
        """
        phase = next((phase for phase in self.phases if phase.name == name), None)
        if not phase:
            return self

        board, test = (
            {name: value for name in names if (value := getattr(phase, name)) is not None}
            for names in (("submissions_a_day", "variants"), ("disclosed", "ladder"))
        )
        by_name = {one.name: one for one in self.tests}
        tests = (
            replace(one, disclosed_after=max(one.final_digits, phase.disclosed or 0), **test)
            for one in map(by_name.__getitem__, dict.fromkeys(phase.tests or by_name))
        )
        return replace(self, tests=tuple(tests), **board)

    def at(self, moment: datetime) -> BoardSettings:
        """Return the settings for a submission that arrives at a moment."""
        return self.in_phase(self.phase_of(moment))

    @property
    def by_phase(self) -> dict[str, BoardSettings]:
        """The settings of each phase, in order."""
        return {name: self.in_phase(name) for name in self.phase_names}

    @property
    def phase_names(self) -> tuple[str, ...]:
        """The names of the phases in order, with the one after the last deadline; ("",) without phases."""
        return (*(phase.name for phase in self.phases), AFTER) if self.phases else ("",)

    def deciding_phase(self, test: str) -> Phase | None:
        """Return the last phase that ranks a test, or None; its deadline is that of the test."""
        return next((phase for phase in reversed(self.phases) if not phase.tests or test in phase.tests), None)

    def part_of(self, test: Test, phase: str, now: datetime) -> str:
        """Return the part of a test that a phase's table shows now; "" if the test is not split.

        The private part is shown after the deadline of the test: by its last phase, and for what arrives later.
        """
        last = self.deciding_phase(test.name)
        if not test.split or last is None or now <= last.until or phase not in (last.name, AFTER):
            return PUBLIC if test.split else ""
        return PRIVATE

    def is_decided(self, test: Test, phase: str, now: datetime) -> bool:
        """Whether a phase's table is decided by the private part, so that no ladder holds, and only finals count."""
        return phase != AFTER and self.part_of(test, phase, now) == PRIVATE

    def digits_of(self, test: Test, now: datetime) -> Digits:
        """Return the significant digits of a test that are public now; with a ladder, ends have one fewer."""
        score = test.final_digits if self.phase_of(now) == AFTER else test.disclosed
        return Digits(score=score, ends=max(score - 1, 1) if test.ladder and score else score)


def read_settings(path: str) -> BoardSettings:
    """Read board.yaml; raises UnreadableFileError, and ConfigError with all errors."""
    return settings_of(path, read_text(path))


def read_text(path: str) -> str:
    """Read a small UTF-8 file; raises UnreadableFileError."""
    with naming(path), open(path, encoding="utf-8") as file:
        return file.read()


KEYS = [
    field.name
    for kind in (BoardSettings, Test, Phase, Limits, ServerSettings, Provider, Mail)
    for field in fields(kind)
]


def settings_of(path: str, content: str) -> BoardSettings:
    """Parse the content of a board.yaml at a path; raises ConfigError with all errors."""
    settings, wrong = strict_yaml.validate(BoardSettings, strict_yaml.compose(content, path), keys=KEYS)
    if not settings or wrong:
        message = "\n  ".join(f"line {problem.line}: {problem.message}" for problem in wrong)
        raise ConfigError(path=path, message=message)
    if problems := list(_problems_of(settings)):
        raise ConfigError(path=path, message="\n  ".join(problems))
    folder = os.path.dirname(os.path.abspath(path))
    challenge, answers = (
        os.path.normpath(os.path.join(folder, name)) for name in (settings.challenge, settings.answers)
    )
    return replace(settings, challenge=challenge, answers=answers)


def _problems_of(settings: BoardSettings) -> Iterator[str]:
    """Yield what is wrong between settings that are right one by one, or does nothing."""
    phases = settings.phases
    untils = [phase.until for phase in phases]
    if untils != sorted(set(untils)):
        yield "phases must be in the order of their deadlines, each later than the one before"
    if len({AFTER, *(phase.name for phase in phases)}) <= len(phases):
        yield f"phases must have different names, and none may be called {AFTER}"
    for phase in phases:
        for name in phase.tests:
            if not settings.test(name):
                yield f"the phase `{visible(phase.name)}` names `{visible(name)}`, which is not in `tests`"
    split = [test for test in settings.tests if test.split]
    (scheme,), kind = parse_schemes(settings.metric), metric_of(settings.metric)
    if split and not (kind.is_of_words and kind.measure.of_losses and not scheme.selecting_flags):
        name = visible(settings.metric)
        yield f"`split` needs a metric of line losses, such as PerplexityHashed, not `{name}`"
    if settings.seed == DEFAULT_SEED:
        if split:
            yield f"`split` needs a secret `seed`: with {DEFAULT_SEED}, anyone can compute the public lines"
        if settings.names == "pseudonyms":
            yield f"`names: pseudonyms` needs a secret `seed`: with {DEFAULT_SEED}, submissions' codes tell the team"
    if settings.finals and not split:
        yield "`finals` needs a test with `split`, on whose private part final submissions are ranked"
    for test in settings.tests:
        if test.disclosed_after is not None and not phases:
            yield f"`disclosed_after` of {visible(test.name)} needs `phases`: it holds after the last deadline"


def metric_of(written: str) -> Metric:
    """Return the metric of a text of board.yaml; raises SchemeError."""
    (scheme,) = parse_schemes(written)
    return find_metric(scheme.metric)


def metrics_of(settings: BoardSettings, test: Test) -> tuple[str, ...]:
    """Return the metrics that have scores; for a part, those that are made from the losses of the ranking metric."""
    if not test.split:
        return settings.metrics

    def table(metric: str) -> object:
        (scheme,) = parse_schemes(metric)
        return metric_of(metric).column, scheme.text_flags, scheme.selecting_flags

    return tuple(metric for metric in settings.metrics if table(metric) == table(settings.metric))


def uninformed_score(metric: str) -> float | None:
    """Return the score of an output that gives every bucket of words the same; None for a metric without buckets.

    >>> uninformed_score("PerplexityHashed"), uninformed_score("Accuracy")
    (1024.0, None)
    """
    return metric_of(metric).uninformed_value


def names_of(metrics: tuple[str, ...]) -> tuple[str, ...]:
    """Return the display names of metrics, from their ``N`` flags; as written if two names are equal."""
    names = tuple(parse_schemes(metric)[0].name for metric in metrics)
    return names if len(set(names)) == len(names) else metrics
