"""The version, the project's addresses, and what an extra installs."""

__version__ = "0.1.0"  # a literal: asking the installed metadata for it costs 37 ms of every start
REPOSITORY = "https://github.com/geval-py/geval-py"  # these two also stand in pyproject.toml
DOCUMENTATION = f"{REPOSITORY}/blob/main/docs"


def build_version() -> str:
    """Return the version, with the commit that the package was built from, if it was built from a checkout."""
    from pkgutil import get_data

    try:
        commit = (get_data("geval_py", "commit.txt") or b"").decode().strip()
    except OSError:
        return __version__
    return f"{__version__}+{commit}" if commit else __version__


def installs(extra: str) -> str:
    """Return the command that installs the packages of an extra, from any folder and in any shell."""
    import re
    from importlib.metadata import PackageNotFoundError, requires
    from shlex import quote

    try:
        needed = (one.partition(";") for one in requires("geval-py") or [])
    except PackageNotFoundError:  # run from its source
        return f"pip install the packages of the extra {extra} in pyproject.toml"
    names = [package.strip() for package, _, marker in needed if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    return " ".join(["pip install", *map(quote, names)])
