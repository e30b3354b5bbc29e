"""The tables in the documentation that are made from the code's own: options, metrics, rules, names and errors.

The list of beginners' mistakes is made from the tests' data.

Each stands in a page between ``<!-- generated: NAME -->`` and ``<!-- end -->``; NAME is a key of TABLES.
"""

from __future__ import annotations

import argparse
import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

from examples import ROOT

import geval_py
from geval_py.authoring.leaks import LEAK_RULES
from geval_py.checking.rules import RULES, Rule
from geval_py.cli.commands import COMMANDS, parser_of
from geval_py.errors import GevalError, ReasonError
from geval_py.scoring.metrics.base import Metric
from geval_py.scoring.metrics.registry import METRICS

PARSERS = {"geval": parser_of} | {f"geval {name}": partial(parser_of, name) for name in COMMANDS}
BUILT = re.compile(r"^<!-- built: (.+) -->\n", re.MULTILINE)
BLOCK = re.compile(r"(?<=^<!-- generated: )(.+?)( -->\n)(.*?)(?=^<!-- end -->$)", re.DOTALL | re.MULTILINE)


class Option(NamedTuple):
    """An option, or an argument without a name.

    ``argument`` names its value, "" where it takes none; ``group`` is the heading below which ``--help`` shows it;
    one that is ``hidden`` is not shown there.
    """

    names: tuple[str, ...]
    argument: str
    help: str
    group: str
    hidden: bool

    @property
    def name(self) -> str:
        """The longest name, as ``--test-name``; of an argument without a name, that of its value."""
        return max(self.names, key=len) if self.names else self.argument


def options() -> dict[str, list[Option]]:
    """Return the options of each command, in the order of ``--help``."""
    return {command: list(_options_of(make())) for command, make in PARSERS.items()}


def _options_of(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for group in parser._action_groups:
        for action in group._group_actions:
            yield Option(
                names=tuple(action.option_strings),
                argument=_argument(action),
                help=(action.help or "").replace("%%", "%"),
                group=group.title or "",
                hidden=action.help == argparse.SUPPRESS,
            )


def _argument(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    return str(action.metavar or ("|".join(action.choices) if action.choices else action.dest.upper()))


def fill(text: str) -> str:
    """Return a page's text with new tables; raises KeyError for an unknown table."""
    return BLOCK.sub(lambda block: f"{block[1]}{block[2]}\n{TABLES[block[1]]()}\n", text)


def built(text: str) -> str:
    """Return a page's text with the tables that only the site has; raises KeyError for an unknown table."""
    return BUILT.sub(lambda place: TABLES[place[1]](), text)


def without_tables(text: str) -> str:
    """Return a page's text without its generated tables."""
    return BLOCK.sub("", text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _options_table(command: str) -> str:
    shown = [option for option in options()[command] if not option.hidden]
    groups = dict.fromkeys(option.group for option in shown)
    blocks = []
    for group in groups:
        rows = [(_code(_written(option)), _escaped(option.help)) for option in shown if option.group == group]
        blocks.append(_table((_escaped(group), "what it does"), rows))
    return "\n".join(blocks)


def _written(option: Option) -> str:
    names = ", ".join(option.names)
    return f"{names} {option.argument}".strip()


def _metrics_table() -> str:
    return _table(("metric", "what it is", "unit", "better", "best", "worst"), map(_metric_row, METRICS.values()))


def _metric_row(metric: Metric) -> tuple[str, ...]:
    measure = metric.measure
    ends = (f"{measure.best:g}", f"{measure.worst:g}")
    return _code(metric.name), metric.summary, measure.unit, measure.direction, *ends


def _rules_table() -> str:
    rows = (
        (f"[{rule.code}](#{rule.code.lower()}-{rule.name})", rule.name, "yes" if rule.fixable else "", rule.summary)
        for rule in RULES
    )
    return _table(("code", "name", "`--fix` fixes it", "what it finds"), rows)


def _leak_rules_table() -> str:
    rows = ((f"[{rule.code}](#{rule.code.lower()}-{rule.name})", rule.name, rule.summary) for rule in LEAK_RULES)
    return _table(("code", "name", "what it finds"), rows)


def _rules_explained() -> str:
    return "\n".join(map(_rule_explained, RULES))


def _rule_explained(rule: Rule) -> str:
    answers = "It is found only where the expected words are there.\n" if rule.needs_answers else ""
    heading = f"### {rule.code} {rule.name}\n\nFound: {rule.summary}.\n"
    return f"{heading}\n{rule.why}\n{answers}\nTo fix it: {rule.fix}\n"


def _names_table() -> str:
    kinds = ((name, getattr(geval_py, name)) for name in geval_py.__all__ if name != "__version__")
    rows = ((_code(name), _summary(value)) for name, value in kinds if not _is_error(value))
    return _table(("name", "what it is"), rows)


def _errors_table() -> str:
    rows = (
        (f"{'… ' * depth}`{kind.__name__}`", str(kind.exit_status), _field_names(kind), _summary(kind))
        for kind, depth in _family(GevalError)
    )
    return _table(("error", "exit status", "data", "what it means"), rows)


def _is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, GevalError)


def _family(kind: type[GevalError], depth: int = 0) -> Iterator[tuple[type[GevalError], int]]:
    yield kind, depth
    for child in kind.__subclasses__():
        # Not those of a test, nor a board's.
        if child.__module__ == GevalError.__module__ and child is not ReasonError:
            yield from _family(child, depth + 1)


def _field_names(kind: type[GevalError]) -> str:
    fields = (name for of in reversed(kind.__mro__) for name in vars(of).get("__annotations__", {}))
    return ", ".join(map(_code, fields))


def _summary(value: object) -> str:
    """Return the first paragraph of a docstring, as Markdown."""
    paragraph = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", paragraph.replace("``", "`"))


def _mistakes() -> str:
    """Return the mistakes of tests/data/mistakes.toml by their kinds, each with what is printed, as it is frozen."""
    table = tomllib.loads((ROOT / "tests/data/mistakes.toml").read_text(encoding="utf-8"))
    mistakes = [(name, mistake) for name, mistake in table.items() if name != "challenge"]
    parts = []
    for kind, group in groupby(mistakes, key=lambda item: item[1]["kind"]):
        parts.append(f"## {kind}\n")
        for name, mistake in group:
            frozen = (ROOT / f"tests/frozen/mistakes/{name}.txt").read_text(encoding="utf-8")
            said = re.sub(r"(?m)^(status \d+|--- standard (output|error))\n|[ \t]+$", "", frozen)
            source = mistake.get("source", "")
            said_by = "This was [reported here]" if "//github.com/" in source else "See [the documentation]"
            more = f" {said_by}({source})." if source else ""
            parts.append(
                f"### {_escaped(mistake['title'])}\n\n"
                f"```python\n{mistake['python']}```\n\n```text\n{said}```\n\n"
                f"{mistake['why']}{more}\n\nTo fix it: {mistake['fix']}\n"
            )
    return "\n".join(parts)


def _mistakes_listed() -> str:
    """Return links to the kinds of mistakes, and below each to its mistakes, as GitHub makes their anchors."""
    headings = re.findall(r"^##(#?) (.*)$", re.sub(r"(?ms)^```.*?^```$", "", _mistakes()), re.MULTILINE)
    rows = ((bool(deeper), text, re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")) for deeper, text in headings)
    return "".join(f"{'  ' * deeper}- [{text}](#{anchor})\n" for deeper, text, anchor in rows)


def _code(text: str) -> str:
    """Write code in a table's cell, where a bar would end the cell."""
    return f"`{text}`".replace("|", r"\|")


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_<>|~\[\]])", r"\\\1", text)


TABLES: dict[str, Callable[[], str]] = {
    **{f"options of {command}": lambda command=command: _options_table(command) for command in PARSERS},
    "metrics": _metrics_table,
    "rules": _rules_table,
    "rules explained": _rules_explained,
    "leak rules": _leak_rules_table,
    "leak rules explained": lambda: "\n".join(map(_rule_explained, LEAK_RULES)),
    "names": _names_table,
    "errors": _errors_table,
    "mistakes listed": _mistakes_listed,
    "mistakes": _mistakes,
}
