"""Delivery of a board's notices, to webhooks and by e-mail; a worker does it, one at a time.

A webhook of the kind ``json`` is signed as https://www.standardwebhooks.com describes it. A notice is taken by moving
its next try into the future; a worker that dies meanwhile has tried, and another one tries again. So a receiver may
get a notice twice, with the same number.
"""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from geval_py.board.database.schema import Notices, notices
from geval_py.board.database.store import Board
from geval_py.board.operations.notices import ANNOUNCED, GIVEN_UP, INVITED, SENT, WAITING
from geval_py.board.server import accounts, queue
from geval_py.board.server.accounts import RefusedError
from geval_py.board.settings import DISCORD, JSON, SLACK, BoardSettings, Mail, Webhook
from geval_py.tables.escapes import json_text
from geval_py.text import visible

SECONDS = 10  # for which a receiver is waited for
PAUSES = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720)]  # between the tries
FIELD = {SLACK: "text", DISCORD: "content"}  # of a chat's message


class DeliveryError(Exception):
    """A notice did not arrive; its text has no address and no secret."""


def deliver_next(board: Board, now: datetime) -> bool:
    """Try to deliver the notice that is due first; return whether there was one."""
    with queue.changing(board) as connection:
        due = (Notices.state == WAITING, Notices.due <= now)
        query = select(notices).where(*due).order_by(Notices.due, Notices.id).limit(1)
        row = connection.execute(query.with_for_update(skip_locked=True)).first()
        if row is None:
            return False
        pause = PAUSES[min(row.tries, len(PAUSES) - 1)]
        taken = {"due": now + pause, "tries": row.tries + 1}
        connection.execute(update(notices).where(Notices.id == row.id).values(taken))
    state, reason = SENT, ""
    settings = board.settings
    webhook = next((one for one in settings.server.webhooks if one.name == row.webhook), None)
    try:
        if row.email and settings.server.mail is not None:
            link = ""
            is_invitation = row.event["event"] == INVITED
            if is_invitation:
                with board.writing() as connection:
                    own = accounts.account(connection, row.event["account"])
                    if own is not None and own.state:  # else they came meanwhile, and a new link would sign them out
                        made = accounts.new_link(connection, own.id, now)
                        link = f"{row.event['address']}/invitation/{made.secret}"
            if link or not is_invitation:
                _send_mail(settings, settings.server.mail, row, link)
        elif not row.email and webhook is not None:  # else the receiver has gone from board.yaml
            _call(webhook, settings, row, now)
    except (DeliveryError, RefusedError) as error:
        state, reason = WAITING if row.tries < len(PAUSES) else GIVEN_UP, visible(str(error))
    with queue.changing(board) as connection:
        connection.execute(update(notices).where(Notices.id == row.id).values(state=state, reason=reason))
    return True


@dataclass(frozen=True, kw_only=True)
class Undelivered:
    """Notices that were tried, and did not arrive: to a webhook, or "" by mail; ``reason`` is of their last tries."""

    webhook: str
    reason: str
    count: int

    def __str__(self) -> str:
        where = f"to {self.webhook}" if self.webhook else "by mail"
        return f"{self.count} {'notice is' if self.count == 1 else 'notices are'} undelivered {where}: {self.reason}"


def undelivered(connection: Connection) -> list[Undelivered]:
    """Return what is not delivered, the most first."""
    key = (Notices.webhook, Notices.reason)
    query = select(*key, func.count()).where(Notices.state != SENT, Notices.tries > 0).group_by(*key)
    lost = [Undelivered(webhook=row[0], reason=row[1], count=row[2]) for row in connection.execute(query)]
    return sorted(lost, key=lambda one: (-one.count, one.webhook, one.reason))


def _call(webhook: Webhook, settings: BoardSettings, row: Row[Any], now: datetime) -> None:
    import httpx2
    from standardwebhooks import Webhook as Signer

    base, code = settings.url.rstrip("/"), row.event.get("code")
    event = {**row.event, "url": f"{base}/submissions/{code}.html" if base and code else base}
    body = json_text(event if webhook.kind == JSON else {FIELD[webhook.kind]: sentence(event)})
    headers = {"Content-Type": "application/json", "webhook-id": row.number}
    headers["webhook-timestamp"] = str(int(now.timestamp()))
    try:
        if webhook.secret:
            headers["webhook-signature"] = Signer(_variable(webhook.secret)).sign(row.number, now, body)
        url = _variable(webhook.url)
        with httpx2.stream("POST", url, content=body.encode(), headers=headers, timeout=SECONDS) as answer:
            status = answer.status_code  # its body is not read, and a redirection not followed
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise DeliveryError(f"no answer ({type(error).__name__})") from None
    except (ValueError, RuntimeError):
        raise DeliveryError(f"the secret in {webhook.secret} is not the secret of a webhook") from None
    if not 200 <= status < 300:
        raise DeliveryError(f"the answer has the status {status}")


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise DeliveryError(f"the environment variable {name} is empty")
    return value


def sentence(event: Mapping[str, Any]) -> str:
    """Write an event in a sentence for a chat, in which no name can address anybody, or make a link.

    >>> sentence({"event": "settled", "board": "Gazette", "submitter": "@all", "state": "scored", "url": ""})
    'Gazette: a submission of ·all is scored.'
    """
    told = str(event["text"] if event["event"] == ANNOUNCED else event["submitter"])
    plain = "".join("·" if character in "<>@&*_`~|[]\\" else character for character in told)
    if event["event"] == ANNOUNCED:
        return f"{event['board']}: {plain}"
    return f"{event['board']}: a submission of {plain} is {event['state']}. {event['url']}".rstrip()


def _send_mail(settings: BoardSettings, mail: Mail, row: Row[Any], link: str) -> None:
    """Mail what became of an upload or, with a ``link``, an invitation."""
    event, base = row.event, settings.url.rstrip("/")
    message = EmailMessage()
    message["From"], message["To"] = mail.sender, row.email
    subject = "invitation" if link else f"{event['file']} is {event['state']}"
    message["Subject"] = visible(f"{settings.title}: {subject}")
    message["Date"] = format_datetime(row.made)
    message["Message-ID"] = f"<{row.number}@{mail.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    if base and not link:
        message["List-Unsubscribe"] = f"<{base}/me>"
    if link:
        message.set_content(f"You are invited to {visible(settings.title)}. This link signs you in once:\n\n{link}\n")
    else:
        off = f"\n\nYou can turn these messages off at {base}/me"
        where = f"\n\n{base}/me/uploads/{event['upload']}{off}" if base else ""
        message.set_content(f"Your upload {visible(event['file'])} is {event['state']}.{where}\n")
    context = ssl.create_default_context()
    try:
        with smtplib.SMTP(mail.host, mail.port, timeout=SECONDS) as smtp:
            if mail.tls:
                smtp.starttls(context=context)
            if mail.user:
                smtp.login(mail.user, _variable(mail.password))
            smtp.send_message(message)
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryError(f"the mail was not accepted ({type(error).__name__})") from None
