"""What was found, as problems of the rules: counts, and the first places."""

from __future__ import annotations

from collections.abc import Sequence

from geval_py.authoring.leaks.items import column_of
from geval_py.authoring.leaks.search import Probe
from geval_py.checking.rules import Place, Problem, Rule
from geval_py.text import visible


class Evidence:
    """The problems of all files, of some rules; ``max_places`` are kept of each (all, for 0)."""

    def __init__(self, rules: Sequence[Rule], max_places: int) -> None:
        self.rules = {rule.code: rule for rule in rules}
        self.max_places = max_places
        self._of_files: list[Problem] = []
        self._looks: dict[str, Look] = {}

    def of(self, path: str, items: int, probe: Probe | None = None) -> Look:
        """Give what collects the problems of a part, of so many items; of a hidden one there are the lines."""
        return self._looks.setdefault(path, Look(self, path, items, probe))

    def add_file(self, code: str, path: str, message: str) -> None:
        """Note a problem of a file as a whole."""
        if code in self.rules:
            message = visible(message)
            place = Place(line=0, column=0, token="", message=message)
            problem = Problem(rule=self.rules[code], path=path, count=1, share=1.0, summary=message, places=(place,))
            self._of_files.append(problem)

    @property
    def problems(self) -> list[Problem]:
        """All problems, those of whole files first."""
        return [*self._of_files, *(problem for look in self._looks.values() for problem in look.problems())]


class Look:
    """Collects the problems of one part, item by item."""

    def __init__(self, evidence: Evidence, path: str, items: int, probe: Probe | None) -> None:
        self._evidence, self._path, self._items, self._probe = evidence, path, items, probe
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[Place]] = {}

    def add(self, code: str, item: int, message: str, *, word: int = 0, gap: bool = False) -> None:
        """Count an item, from 0, and keep its place, if one more is wanted: at a word of it, or at its gap."""
        if code not in self._evidence.rules:
            return
        self._counts[code] = self._counts.get(code, 0) + 1
        places = self._places.setdefault(code, [])
        if not self._evidence.max_places or len(places) < self._evidence.max_places:
            places.append(self._place(item, message, word, gap=gap))

    def _place(self, item: int, message: str, word: int, *, gap: bool) -> Place:
        column, text = 1, ""
        if self._probe is not None:
            text = self._probe.block.texts[item]
            column = column_of(text, self._probe.source.columns, word, gap=gap)
        return Place(line=item + 1, column=column, token="", message=visible(message), text=text)

    def problems(self) -> list[Problem]:
        """Give a problem a rule."""
        return [
            Problem(
                rule=self._evidence.rules[code],
                path=self._path,
                count=count,
                share=min(1.0, count / self._items),
                summary=self._evidence.rules[code].summary,
                places=tuple(self._places[code]),
            )
            for code, count in self._counts.items()
        ]
