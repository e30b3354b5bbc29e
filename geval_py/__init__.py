"""Get GEval's exact scores, fast, and see what drives them.

from geval_py import evaluate
print(evaluate("my-challenge", "dev-0").score)

The public names and their modules are listed in ``__init__.pyi``. A name is imported when it is first used, so a
program waits only for what it needs.
"""

from importlib import import_module


def _modules() -> dict[str, str]:
    """Read the module of each public name from the stub."""
    import re  # here, as pkgutil: a command needs no stub
    from pkgutil import get_data

    stub = (get_data(__name__, "__init__.pyi") or b"").decode()
    return {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as \w+$", stub, re.MULTILINE)}


def __getattr__(name: str) -> object:
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


def __dir__() -> list[str]:
    return sorted(_modules())
