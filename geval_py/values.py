"""Frozen values with named fields, which cost nothing to define.

The command starts in a few hundredths of a second, and forty data classes alone take as long to make: each compiles
its methods from text, and the module that does so imports inspect. A Value has the same methods, inherited.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, NoReturn, Self
    from typing import dataclass_transform as dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Stand in for typing's, which only a type checker looks at."""
        return lambda kind: kind


class Fields:
    """What has named fields: the annotated names of its class and its bases, some with a default."""

    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name, of in cls.__annotations__.items() if "ClassVar" not in str(of))
        cls.fields = tuple(dict.fromkeys((*cls.fields, *own)))

    def _fill(self, values: dict[str, Any]) -> None:
        """Take the values of the fields; raises TypeError for one that is missing, and for one too many."""
        mine = vars(self)
        for name in self.fields:
            mine[name] = values.pop(name) if name in values else self._default(name)
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(values)}")

    def _default(self, name: str) -> object:
        try:
            return getattr(type(self), name)
        except AttributeError:
            raise TypeError(f"{type(self).__name__} needs {name}=…") from None


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Value(Fields):
    """A frozen value, made of the values of its fields, by keyword.

    Values of one class with equal fields are equal. ``hidden`` are the fields left out of ``repr()``.
    """

    hidden: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, **values: Any) -> None:
        self._fill(values)
        self.check()

    def check(self) -> None:
        """Raise an error for fields that do not go together."""

    def replace(self, **changes: Any) -> Self:
        """Give the same value but for some fields."""
        return type(self)(**(vars(self) | changes))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")

    def _values(self) -> Iterator[object]:
        return (vars(self)[name] for name in self.fields)

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._values()))

    def __repr__(self) -> str:
        shown = (f"{name}={vars(self)[name]!r}" for name in self.fields if name not in self.hidden)
        return f"{type(self).__name__}({', '.join(shown)})"
