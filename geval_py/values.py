"""Frozen values with named fields, which cost nothing to define.

The command starts in a few hundredths of a second, and forty dataclasses would take as long: each compiles its
methods from text, and ``dataclasses`` imports ``inspect``. A Value inherits the same methods.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, NoReturn, Self
    from typing import NamedTuple as NamedTuple
    from typing import dataclass_transform as dataclass_transform
else:
    from collections import namedtuple

    def dataclass_transform(**_: object) -> object:
        """Replace typing's at run time; only a type checker needs it."""
        return lambda kind: kind

    class _TupleMaker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            made = namedtuple(name, body["__annotations__"], module=body["__module__"])
            made.__doc__ = body["__doc__"]
            return made

    class NamedTuple(metaclass=_TupleMaker):
        """Replace typing's at run time, for classes without defaults and methods: importing typing takes long."""


class _FieldNames:
    """The names of a class's fields, found when they are first asked for: defining a class then costs nothing."""

    def __get__(self, value: object, kind: type[Any]) -> tuple[str, ...]:
        names: tuple[str, ...] | None = vars(kind).get("_field_names")
        if names is None:
            annotations = [vars(base).get("__annotations__", {}) for base in reversed(kind.__mro__)]
            own = [name for of in annotations for name, text in of.items() if "ClassVar" not in str(text)]
            kind._field_names = names = tuple(dict.fromkeys(own))
        return names


class Fields:
    """A base class that takes its fields from the annotations of the class and its bases, some with a default."""

    fields = _FieldNames()

    def _fill(self, values: dict[str, Any]) -> None:
        """Set the fields; raises TypeError for a missing field and for an unknown one."""
        mine = vars(self)
        for name in self.fields:
            try:
                mine[name] = values.pop(name) if name in values else getattr(type(self), name)
            except AttributeError:
                raise TypeError(f"{type(self).__name__} needs {name}=…") from None
        if values:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(values)}")


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Value(Fields):
    """A frozen value; its fields are given by keyword.

    Values of one class with equal fields are equal. ``hidden`` names the fields left out of ``repr()``.
    """

    hidden: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, **values: Any) -> None:
        self._fill(values)
        self.check()

    def check(self) -> None:
        """Raise an error for fields that contradict each other."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**(vars(self) | changes))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(vars(self)[name] for name in self.fields))

    def __repr__(self) -> str:
        shown = (f"{name}={vars(self)[name]!r}" for name in self.fields if name not in self.hidden)
        return f"{type(self).__name__}({', '.join(shown)})"
