"""The pages of those who are signed in: rendered by the templates of the site, in the frame of its pages."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any

from markupsafe import escape

from geval_py.board.server.accounts import Account
from geval_py.board.server.guards import PAGE_POLICY
from geval_py.board.settings import Settings
from geval_py.board.site.files import MARK
from geval_py.board.site.pages import Frame
from geval_py.board.site.rendering import render
from geval_py.tables.escapes import short

ACCOUNT_MARK = "<!-- account -->"  # in the site's pages: where a server says who is signed in
LONGEST_SHOWN = 30  # characters of a name


def with_account(text: str, account: Account | None) -> str:
    """Return a page that says who is signed in, or how to."""
    if account is None:
        link = '<a href="/sign-in">Sign in</a>'
    else:
        link = f'<a href="/me">{escape(short(account.name, LONGEST_SHOWN))}</a>'
    return text.replace(ACCOUNT_MARK, f'<p class="account">{link}</p>', 1)


def page(folder: str, settings: Settings, template: str, title: str, **values: Any) -> str:
    """Render a page of the server in the frame of the site in a folder."""
    around = {"root": "/", "frame": _frame(folder, settings), "policy": PAGE_POLICY}
    return render(f"{template}.html", title=title, section=template, settings=settings, **around, **values)


def _frame(folder: str, settings: Settings) -> Frame:
    with open(os.path.join(folder, MARK), encoding="utf-8") as file:
        mark = json.load(file)
    return Frame(
        title=settings.title,
        links=[(key, name, address) for key, name, address in mark["pages"]],
        submissions=mark["submissions"],
        updated=datetime.fromisoformat(mark["updated"]) if mark["updated"] else None,
        has_cite=mark["has_cite"],
    )
