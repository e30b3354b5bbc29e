"""Build the site from README.md, docs/ and the code; scripts/docs runs this.

The Markdown is written for a code host. Copies of the pages are made for the site, and in them

- the lists of links in docs/index.md become the site's table of contents, a part for each heading;
- links to files outside of docs/ become links to their copies;
- tables that are not kept, such as those of all options, are filled in;
- badges, which other hosts draw, are left out;
- the empty lines in Python sessions become those that an interpreter needs, so that what is copied can be pasted;
- a comment with keywords becomes entries of the index, which the search puts first;
- each name that docs/api.md lists becomes what autodoc knows of it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from codeop import compile_command
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

from examples import PAGES, ROOT
from tables import built

DOCS = ROOT / "docs"
SCHEMAS = DOCS / "schemas"  # published under their own names
SITE = DOCS / "site"  # the settings, the style and the scripts
STAGE = ROOT / "build" / "docs-pages"
BUILT = ROOT / "build" / "docs"
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
BADGE = re.compile(r"^\[!\[.*\]\(https?:.*\)\]\(.*\)\n", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(#[^)]*)?\)")
LISTED = re.compile(r"^- \[([^]\n]+)\]\(([^)#\n]+)\)", re.MULTILINE)
KEYWORDS = re.compile(r"^<!-- keywords: (.*?) -->$", re.DOTALL | re.MULTILINE)
SESSION = re.compile(r"^```pycon\n.*?^```$", re.DOTALL | re.MULTILINE)
STATEMENT = re.compile(r"^>>> .*\n(?:\.\.\. .*\n)*", re.MULTILINE)
NAME = re.compile(r"^- `([\w.]+)`\n", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Return each page's name on the site."""
    others = {
        ROOT / name: name.removesuffix(".md").lower()
        for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
    }
    rest = [page for page in PAGES if page not in others]
    return others | {page: page.stem if page.parent == DOCS else f"challenge-{page.parent.name}" for page in rest}


def contents(index: str) -> dict[str, list[tuple[str, str]]]:
    """Return the links in the lists of the front page by their heading: the text and the page of each."""
    parts = re.split(r"^## (.*)$", index, flags=re.MULTILINE)
    lists = {heading: LISTED.findall(text) for heading, text in zip(parts[1::2], parts[2::2], strict=True)}
    return {heading: links for heading, links in lists.items() if links}


def staged(page: Path, names: dict[Path, str]) -> tuple[str, list[Path]]:
    """Return a page's text for the site, and the files that it links to which are no pages."""
    files = []

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / match[1]))
        if target in names:
            return f"]({names[target]}.md{match[2] or ''})"
        if target.parent == SCHEMAS:
            return f"](schema:{target.name})"
        files.append(target)
        return f"]({target.relative_to(ROOT).as_posix()})"

    text = BADGE.sub("", built(page.read_text(encoding="utf-8")))
    code = [match.group() for match in CODE.finditer(text)]
    parts = [LINK.sub(link, part) for part in CODE.split(text)]
    return "".join(part for pair in zip(parts, [*code, ""], strict=True) for part in pair), files


def pasteable(session: str) -> str:
    """Return a Python session with the empty lines that an interpreter needs; Ruff's style has others."""

    def ended(match: re.Match[str]) -> str:
        code = re.sub("(?m)^(?:>>>|[.]{3}) ", "", match[0]).rstrip()
        return match[0] if compile_command(code) else f"{match[0]}...\n"

    return STATEMENT.sub(ended, re.sub(r"(?m)^\.\.\.\n", "", session))


def toctree(heading: str, links: list[tuple[str, str]]) -> str:
    """Return a part of the table of contents, which the front page itself does not show."""
    lines = [f"{text} <{page}>" for text, page in links]
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {heading}", "", *lines, "```", ""])


def directive(name: str) -> str:
    """Return the directive that describes a name: a public one, or that of a class in a module of the package."""
    path = f"geval_py.{name}"
    value = resolve_name(path)
    if isinstance(value, type) and issubclass(value, BaseException):
        kind, options = (
            "exception",
            [":members:", ":undoc-members:", ":show-inheritance:", ":exclude-members: fields"],
        )
    elif isinstance(value, type):
        kind, options = "class", [":members:", ":undoc-members:", ":inherited-members: Value, Protocol, object"]
        options.append(":exclude-members: fields, hidden, of, count, index")
    elif isinstance(value, ModuleType):
        kind, options = "module", [":members:"]
    else:
        kind, options = ("function", []) if callable(value) else ("data", [":no-value:"])
    return "\n".join(["```{eval-rst}", f".. auto{kind}:: {path}", *(f"   {o}" for o in options), "```", ""])


def index_entries(keywords: str) -> str:
    """Return the directive that adds keywords, which commas separate, to the index."""
    entries = ", ".join(f"! {' '.join(word.split())}" for word in keywords.split(","))
    return f"```{{index}} {entries}\n```"


def stage(folder: Path) -> None:
    """Write the pages for the site into a folder."""
    names = pages()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page, name in names.items():
        text, files = staged(page, names)
        text = SESSION.sub(lambda match: pasteable(match[0]), text)
        text = KEYWORDS.sub(lambda match: index_entries(match[1]), text)
        if name == "index":
            text += "".join(toctree(*part) for part in contents(text).items())
        if name == "api":
            text = NAME.sub(lambda match: directive(match[1]), text)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        for file in files:
            copy = folder / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)


def build(folder: Path, output: Path) -> int:
    """Build the site from staged pages; return the exit status, which is 1 if there is a warning."""
    from sphinx.cmd.build import main as sphinx

    shutil.copytree(SCHEMAS, output / SCHEMAS.name, dirs_exist_ok=True)
    words = ["-b", "html", "-W", "--keep-going", "-q", "-E", "-c", str(SITE), "-d", str(folder / ".trees")]
    return sphinx([*words, str(folder), str(output)])


def main() -> None:
    """Build all anew."""
    shutil.rmtree(BUILT, ignore_errors=True)
    stage(STAGE)
    status = build(STAGE, BUILT)
    print(BUILT / "index.html", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
