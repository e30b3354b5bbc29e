"""Patterns of paths, as gonito.yaml has them: ``*.yaml``, ``config/*.json``, ``**/params.yaml``."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(name: str, pattern: str) -> bool:
    """Tell whether a path is of a pattern: * and ? are within a folder, ** is any number of folders.

    >>> matches("config/a.yaml", "*.yaml"), matches("config/a.yaml", "**/*.yaml"), matches("a.yaml", "**/*.yaml")
    (False, True, True)
    """
    parts = name.split("/")
    places = {0}  # how many parts of the path may have been taken
    for glob in pattern.removeprefix("./").split("/"):
        if glob == "**":
            places = set(range(min(places, default=len(parts) + 1), len(parts) + 1))
        else:
            places = {n + 1 for n in places if n < len(parts) and fnmatchcase(parts[n], glob)}
    return len(parts) in places
