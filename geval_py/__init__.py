"""Score word-gap prediction exactly as GEval does, fast, and learn why.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)

The public names and their modules are listed in ``__init__.pyi``. A name is imported when it is first used, so a
program waits only for what it needs.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def _modules() -> dict[str, str]:
    """Read the module of each public name from the stub."""
    import re
    from pkgutil import get_data

    stub = (get_data(__name__, "__init__.pyi") or b"").decode()
    return {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \w+$", stub, re.MULTILINE)}


def __getattr__(name: str) -> object:
    from importlib import import_module

    modules = _modules()
    if name == "__all__":
        return sorted(modules)
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if modules[name] == __name__:  # a module, such as plots
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(modules[name]), name)
    globals()[name] = value
    return value


def __dir__() -> "Sequence[str]":
    return sorted(_modules())
