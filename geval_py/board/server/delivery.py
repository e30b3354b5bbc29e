"""Delivery of a board's notices by e-mail; a worker does it in a thread for each board.

A notice is taken by moving its next try into the future; a worker that dies meanwhile has tried, and another one
tries again. So a receiver may get a notice twice, with the same number.
"""

from __future__ import annotations

import logging
import os
import smtplib
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from geval_py.board.database.schema import Notices, notices
from geval_py.board.database.store import Board
from geval_py.board.operations.notices import GIVEN_UP, SENT, WAITING
from geval_py.board.people import accounts
from geval_py.board.people.accounts import A, Account
from geval_py.board.people.schema import ORGANISER
from geval_py.board.people.store import accounts_of
from geval_py.board.server import queue
from geval_py.board.settings import BoardSettings, Mail
from geval_py.text import visible

SECONDS = 10  # for which a receiver is waited for
PAUSES = [timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720)]  # between the tries


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
    try:
        if board.settings.server.mail is not None:  # else it has gone from board.yaml
            _deliver(board, board.settings.server.mail, row, now)
    except (DeliveryError, ValueError, LookupError) as error:  # a notice that cannot be written stops no other one
        state, reason = WAITING if row.tries < len(PAUSES) else GIVEN_UP, visible(str(error))
        logging.getLogger("geval").warning("geval: note: notice %s was not delivered: %s", row.number, reason)
    with queue.changing(board) as connection:
        connection.execute(update(notices).where(Notices.id == row.id).values(state=state, reason=reason))
    return True


@dataclass(frozen=True, kw_only=True)
class Undelivered:
    """Notices that were tried, and did not arrive; ``reason`` is of their last tries."""

    reason: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} {'notice is' if self.count == 1 else 'notices are'} undelivered: {self.reason}"


def undelivered(connection: Connection) -> list[Undelivered]:
    """Return what is not delivered, the most first."""
    is_lost = Notices.state != SENT, Notices.tries > 0
    query = select(Notices.reason, func.count()).where(*is_lost).group_by(Notices.reason)
    lost = [Undelivered(reason=row[0], count=row[1]) for row in connection.execute(query)]
    return sorted(lost, key=lambda one: (-one.count, one.reason))


def _deliver(board: Board, mail: Mail, row: Row[Any], now: datetime) -> None:
    """Mail a notice to its account, unless that was closed, has no address or wants no mail; raises DeliveryError."""
    event, link = row.event, ""
    store = accounts_of(board)
    with store.reading() as people:
        member = accounts.account(people, A.id == row.account)
    if member is None or not member.email:
        return
    if "address" in event:
        with store.writing() as people:
            maker = accounts.account(people, A.id == event["by"], A.role == ORGANISER)
            if maker is None or not member.state:  # they came meanwhile, and a new link would sign them out
                return
            link = f"{event['address']}/invitation/{accounts.new_link(people, member, now, made_by=maker.id)}"
    elif not member.mailed:
        return
    _send(mail, _letter(board.settings, mail, row, member, link))


def _letter(settings: BoardSettings, mail: Mail, row: Row[Any], member: Account, link: str) -> EmailMessage:
    """Write the mail of a notice."""
    event, base = row.event, settings.url.rstrip("/")
    if link:
        subject = "invitation"
        text = f"You are invited to {visible(settings.title)}. This link signs you in once:\n\n{link}\n"
    elif "announcement" in event:
        subject, text = "announcement", f"{event['announcement']}\n"
    elif "corrected" in event:
        subject = "scores were corrected"
        text = f"The organiser scored again. The score or place of {visible(event['corrected'])} changed.\n"
    else:
        subject = f"{event['file']} is {event['state']}"
        where = f"\n\n{base}/me/uploads/{event['upload']}" if base else ""
        text = f"Your upload {visible(event['file'])} is {event['state']}.{where}\n"
    message = EmailMessage()
    message["From"], message["To"] = mail.sender, member.email
    message["Subject"] = visible(f"{settings.title}: {subject}")
    message["Date"] = format_datetime(row.made)
    message["Message-ID"] = f"<{row.number}@{mail.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    if base and not link:
        message["List-Unsubscribe"] = f"<{base}/me>"
        text += f"\nYou can turn these messages off at {base}/me\n"
    message.set_content(text)
    return message


def _send(mail: Mail, message: EmailMessage) -> None:
    try:
        with smtplib.SMTP(mail.host, mail.port, timeout=SECONDS) as smtp:
            if mail.tls:
                smtp.starttls(context=ssl.create_default_context())
            if mail.user:
                smtp.login(mail.user, _variable(mail.password))
            smtp.send_message(message)
    except UnicodeError:  # smtplib sends ASCII alone
        raise DeliveryError(f"the mail's address, user or password ({mail.password}) is not ASCII") from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise DeliveryError(f"the mail was not accepted ({type(error).__name__})") from None


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise DeliveryError(f"the environment variable {name} is empty")
    return value
