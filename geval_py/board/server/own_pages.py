"""The pages of those who are signed in: rendered by the templates of the site, in the frame of its pages."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import escape
from sqlalchemy import Connection, Row

from geval_py.board.operations.receipts import day_of, quota_used, written
from geval_py.board.server import accounts, uploads
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MyPage:
    """What a team sees of itself: ``used`` of ``allowed`` submissions of a day (0: any number), and the rest."""

    uploads: Sequence[uploads.UploadView]
    tokens: Sequence[Row[Any]]
    members: Sequence[Account]
    used: int
    allowed: int
    day: str
    next_day: datetime


def my_page(connection: Connection, settings: Settings, account: Account, now: datetime) -> MyPage:
    """Read what an account sees on its own page."""
    own = uploads.uploads_of(connection, account.submitter_id) if account.submitter_id else []
    day = day_of(now, settings.zone)
    return MyPage(
        uploads=own,
        tokens=accounts.tokens_of(connection, account.id, now),
        members=accounts.members(connection, account.submitter_id) if account.submitter_id else [],
        used=quota_used(connection, settings, account.submitter_id, now, with_uploads=True),
        allowed=settings.at(now).submissions_a_day,
        day=day.name,
        next_day=day.end,
    )


def upload_document(one: uploads.UploadView) -> dict[str, Any]:
    """Return an upload as JSON."""
    names = ("number", "name", "test", "sha256", "bytes", "dry", "state", "reason", "code", "cost", "charge")
    told = {name: getattr(one, name) for name in names}
    return {**told, "settled": one.is_settled, "arrived": written(one.arrived), "problems": list(one.problems)}
