"""Made-up boards as a site sees them: submitters, outputs, standings, of any size, always the same; and their files."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import product

from geval_py.board.ranking.views import Entry, Figures, OutputView, Standings, SubmissionView
from geval_py.board.settings import BoardSettings, Phase, Test
from geval_py.board.site.files import Frame
from geval_py.board.site.pages import pages
from geval_py.board.site.view import SiteView

START = datetime(2026, 10, 1, 9, tzinfo=UTC)
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\u202egnp"
README = "# Gazette: guess the word\n\nA *challenge*.\n\n| file | what |\n|---|--:|\n| `in.tsv` | 1 |\n\n```sh\ngeval -t dev-0\n```\n"


def significant(value, digits):
    return value if value is None or not math.isfinite(value) else float(f"{value:.{digits - 1}e}")


def settings(**changes):
    values = {
        "title": "Gazette", "challenge": "/challenge", "answers": "/answers", "metric": "PerplexityHashed",
        "also": ("Accuracy",), "tests": (Test(name="test-A"), Test(name="dev-0", visible=True)),
        "url": "https://boards.example.org/gazette/",
    }  # fmt: skip
    return BoardSettings(**(values | changes))


def submission(number, *, submitter, score, rng, **changes):
    """A submission with an output for each test, the one for dev-0 a little better."""
    own = {"model": rng.choice(["bigram", "trigram", "lstm", "transformer"]), "k": str(rng.choice([1, 2, 4, 8, 16]))}
    outputs, variant = [], ",".join(f"{name}={value}" for name, value in own.items())
    for index, (test, value) in enumerate([("test-A", score), ("dev-0", score * 0.93)], 2 * number):
        output = {"id": index, "test": test, "variant": variant, "params": own, "evaluation_id": index}
        outputs.append(OutputView(**output, figures=figures(value, rng)))
    values = {
        "code": f"{number * 2654435761 % 16**12:012x}", "submitter": submitter,
        "arrived": START + timedelta(hours=7 * number),
        "description": f"{own['model']} with k={own['k']}, run {number}",
        "tags": (own["model"], "neural" if own["model"] in ("lstm", "transformer") else "counts"),
        "params": {"lr": str(rng.choice([0.1, 0.01, 0.001]))}, "scorer": "0.4.0",
        "files": ({"name": "test-A/out.tsv", "bytes": 1234567, "sha256": f"{number:064x}"},), "outputs": tuple(outputs),
    }  # fmt: skip
    return SubmissionView(**(values | changes))


def figures(value, rng):
    if not math.isfinite(value):
        return {"PerplexityHashed": Figures(value=value), "Accuracy": Figures(value=0.1)}
    low, high = (significant(value * end, 4) for end in (0.965, 1.037))
    accuracy = Figures(value=significant(min(0.9, 30 / value + rng.random() / 50), 4))
    return {"PerplexityHashed": Figures(value=significant(value, 4), low=low, high=high), "Accuracy": accuracy}


def standings_of(submissions, test, *, phase="", digits=4):
    """The best output of each submitter in order; baselines without a place; groups of four neighbours."""
    best = {}
    for one in submissions:
        for output in one.outputs:
            score = output.figures["PerplexityHashed"].value
            key = (one.submitter, one.baseline)
            if one.is_ranked and output.test == test and (key not in best or score < best[key][0]):
                best[key] = (score, one, output)
    entries, place = [], 0
    for score, one, output in sorted(best.values(), key=lambda row: (row[0], row[1].arrived)):
        place += not one.baseline
        entries.append(entry_of(one, output, score if digits else None, None if one.baseline else place))
    return Standings(
        test=test, phase=phase, metric="PerplexityHashed", others=("Accuracy",), unit="words", direction="lower",
        digits=digits, end_digits=digits, by="best", entries=tuple(entries),
    )  # fmt: skip


def entry_of(one, output, score, place):
    ranked = place is not None and score is not None
    if not ranked:
        output = replace(output, figures={"PerplexityHashed": Figures(value=score), "Accuracy": Figures()})
    return Entry(
        submission=one, output=output, place=place if ranked else None, shared=place == 3,
        first=max(1, place - 2) if ranked else None, last=place + 2 if ranked else None,
        groups=(place // 3, place // 3 + 1) if ranked else (),
    )  # fmt: skip


def submissions_of(number, submitters, seed=7):
    """Submissions in the order of time: better and better, a baseline first, some broken, one withdrawn, one hostile."""
    rng = random.Random(seed)
    first = {"submitter": "organisers", "score": 327.53, "baseline": True, "description": "unigram baseline"}
    found = [submission(0, rng=rng, **first)]
    for index in range(1, number):
        score = 150 + 180 * math.exp(-2.5 * index / number) * rng.random() + rng.random() * 20
        name = f"Team {index % submitters:03}"
        one = submission(index, submitter=name, score=math.inf if index % 41 == 11 else score, rng=rng)
        found.append(broken(one, index))
    return found


def broken(one, index):
    summary = "the probabilities sum to 1.2"
    problem = {"rule": "E101", "path": "test-A/out.tsv", "summary": summary, "places": [{"line": 7}]}
    if index % 17 == 5:
        reason = f"test-A/out.tsv, line 7: {summary}"
        return replace(one, state="rejected", reason=reason, problems_json=json.dumps([problem]), outputs=())
    if index % 29 == 9:
        return replace(one, state="failed", reason="scoring took more than 600 seconds", outputs=())
    if index % 23 == 3:
        return replace(one, withdrawn=one.arrived + timedelta(days=1), outputs=())
    if index % 31 == 8:
        links = ("code", "https://example.org/x"), ("evil", "javascript:alert(1)"), (HOSTILE, "https://example.org/y")
        texts = dict.fromkeys(("submitter", "description", "affiliation", "remark"), HOSTILE)
        return replace(one, **texts, tags=(HOSTILE,), links=links)
    return one


def view(found=None, *, digits=4, changes=None, **others):
    """A whole site of submissions in the order of time, by default made-up ones."""
    found = submissions_of(40, 12) if found is None else found
    own = settings(**(changes or {}))
    tables = product([test.name for test in own.tests], own.phase_names)
    values = {
        "settings": own, "metrics": own.metrics, "phase": own.phase_names[0],
        "standings": {one: standings_of(found, one[0], phase=one[1], digits=digits) for one in tables},
        "submissions": tuple(reversed(found)), "readme": README, "methods": {},
    }  # fmt: skip
    return SiteView(**(values | others))


PHASES = (Phase(name="main", until=datetime(2027, 1, 31, 23, tzinfo=UTC)),)


def of_two_phases():
    """A site after a deadline: who came first stands in the phase before it, and who came last behind it."""
    whole = view(changes={"phases": PHASES}, phase="post-deadline")
    middle = whole.submissions[len(whole.submissions) // 2].arrived
    standings = {}
    for (test, phase), of in whole.standings.items():
        of_phase = [one for one in of.entries if (one.submission.arrived > middle) == (phase == "post-deadline")]
        entries = (replace(one, submission=replace(one.submission, phase=phase)) for one in of_phase)
        standings[test, phase] = replace(of, entries=tuple(entries))
    return replace(whole, standings=standings)


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.text.append(" " if tag in ("td", "th", "p", "h1", "h2", "h3", "li", "dt", "dd") else "")

    def handle_data(self, data):
        self.text.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]

    @property
    def words(self):
        return " ".join("".join(self.text).split())


def made(view):
    frame = Frame(settings=view.settings, phase=view.phase, view=view)
    return {path: make() for path, make in pages(view, frame).items()}


def html_of(files):
    return {path: text for path, text in files.items() if path.endswith(".html")}
