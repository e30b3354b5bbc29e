"""The rules, for people: all in a line each, or one explained."""

from __future__ import annotations

from geval_py.checking.rules import RULES, Rule


def list_of_rules() -> str:
    """Write a line a rule: code, name, whether --fix mends it, and what is wrong."""
    rows = (f"{r.code} {r.name:23} {'fixable ' if r.fixable else '        '} {r.summary}\n" for r in RULES)
    return "".join(rows)


def explanation(rule: Rule) -> str:
    """Write all that the table says of a rule."""
    lines = [f"{rule.code} {rule.name} ({rule.severity})", f"  {rule.summary}", "", rule.why, rule.mend]
    if rule.fixable:
        lines.append("geval check --fix mends it, where that needs no guessing.")
    if rule.needs_answers:
        lines.append("It is found only where the expected words are there.")
    return "\n".join(lines) + "\n"
