"""What there is: the metrics; the rules of the checker, all of them or one."""

from __future__ import annotations

from collections.abc import Sequence

from geval_py.checking.rules import RULES, Rule
from geval_py.scoring.metrics import METRICS
from geval_py.showing.tables import Column, Table


def metrics_table() -> Table:
    """Make a table with a row a metric."""
    columns = [Column(name=name) for name in ("metric", "unit", "direction", "what it is")]
    measures = ((metric, metric.measure) for metric in METRICS.values())
    return Table(
        columns,
        [(metric.name, of.unit, f"{of.direction} is better", metric.summary) for metric, of in measures],
    )


def rules_table(rules: Sequence[Rule] = RULES) -> Table:
    """Make a table with a row a rule."""
    columns = [Column(name=name) for name in ("rule", "", "what is wrong")]
    return Table(
        columns,
        [(f"{rule.code} {rule.name}", "fixable" if rule.fixable else "", rule.summary) for rule in rules],
    )


def explanation(rule: Rule) -> str:
    """Write all that the table says of a rule."""
    lines = [f"{rule.code} {rule.name} ({rule.severity})", f"  {rule.summary}", "", rule.why, rule.mend]
    if rule.fixable:
        lines.append("geval check --fix mends it, where that needs no guessing.")
    if rule.needs_answers:
        lines.append("It is found only where the expected words are there.")
    return "\n".join(lines) + "\n"
