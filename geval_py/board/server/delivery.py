"""Delivery of a board's notices by e-mail; a worker does it in threads of their own.

Each receiver has a queue: a notice is tried when all earlier ones of its account are sent or given up, so a mailbox
that hangs delays only its own notices. A notice is taken by moving its next try into the future; a worker that dies
meanwhile has tried, and another one tries again. So a receiver may get a notice twice, with the same number.
"""

from __future__ import annotations

import logging
import os
import smtplib
import ssl
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from sqlalchemy import Row, exists, select, update

from geval_py.board.database.schema import Notices, notices
from geval_py.board.database.store import Board
from geval_py.board.operations.notices import GIVEN_UP, SENT, WAITING
from geval_py.board.people import accounts, secrets
from geval_py.board.people.accounts import A
from geval_py.board.people.schema import ORGANISER
from geval_py.board.people.store import accounts_of
from geval_py.board.server import queue
from geval_py.board.settings import Mail
from geval_py.text import visible

THREADS = 2  # of a board
SECONDS = 10  # for which a receiver is waited for
MAX_TRIES = 7  # within a day


class DeliveryError(Exception):
    """A notice did not arrive; its text has no address and no secret."""


def deliver_next(board: Board, now: datetime) -> bool:
    """Try to deliver the notice that is due first; return whether there was one."""
    earlier = notices.alias("earlier")
    is_behind = exists().where(
        earlier.c.account == Notices.account, earlier.c.state == WAITING, earlier.c.id < Notices.id
    )
    with queue.locking(board) as connection:
        query = select(notices).where(Notices.state == WAITING, Notices.due <= now, ~is_behind)
        query = query.order_by(Notices.tries, Notices.id).limit(1).with_for_update(skip_locked=True)
        row = connection.execute(query).first()
        if not row:
            return False
        taken = {"due": now + timedelta(minutes=4**row.tries), "tries": row.tries + 1}
        connection.execute(update(notices).where(Notices.id == row.id).values(taken))
    mail, state, reason = board.settings.server.mail, SENT, ""
    try:
        if mail and (letter := _letter(board, mail, row, now)):  # else it has gone from board.yaml
            _send(mail, letter)
    except DeliveryError as error:
        reason = str(error)
    except (smtplib.SMTPException, OSError, ValueError, LookupError) as error:
        reason = f"the mail was not accepted ({type(error).__name__})"
    if reason:
        state = WAITING if row.tries + 1 < MAX_TRIES else GIVEN_UP
        logging.getLogger("geval").warning("geval: note: notice %s was not delivered: %s", row.number, reason)
    with queue.locking(board) as connection:
        connection.execute(update(notices).where(Notices.id == row.id).values(state=state, reason=visible(reason)))
    return True


def _letter(board: Board, mail: Mail, row: Row[Any], now: datetime) -> EmailMessage | None:
    """Write the mail of a notice; None if the account was closed, has no address or wants no mail."""
    settings, event, store, page = board.settings, row.event, accounts_of(board), ""
    base = settings.url.rstrip("/")
    with store.reading() as people:
        member = accounts.account(people, A.id == row.account)
    if member is None or not member.email:
        return None
    if "address" in event:
        with store.writing() as people:
            maker = accounts.account(people, A.id == event["by"], A.role == ORGANISER)
            if maker is None or not member.state:  # they came meanwhile, and a new link would sign them out
                return None
            link = f"{event['address']}/invitation/{accounts.new_link(people, now, member, made_by=maker.id)}"
        until = now + timedelta(days=secrets.DAYS[secrets.INVITATION])
        subject, text = "invitation", f"{visible(member.label)}, you are invited to {visible(settings.title)}.\n"
        text += f"This link signs you in once, until {until:%Y-%m-%d}:\n\n{link}\n"
    elif not member.mailed:
        return None
    elif "announcement" in event:
        subject, text, page = "announcement", f"{event['announcement']}\n", "/"
    elif "corrected" in event:
        subject, page = "scores were corrected", "/me"
        text = f"The organiser scored again, because {event['reason']}.\n"
        text += f"The score or place of {visible(event['corrected'])} changed.\n"
    else:
        subject, page = f"{event['file']} is {event['state']}", f"/me/uploads/{event['upload']}"
        text = f"Your upload {visible(event['file'])} is {event['state']}.\n"
    message = EmailMessage()
    message["From"], message["To"] = mail.sender, member.email
    message["Subject"] = visible(f"{settings.title}: {subject}")
    message["Date"] = format_datetime(row.made)
    message["Message-ID"] = f"<{row.number}@{mail.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    if base and page:
        message["List-Unsubscribe"] = f"<{base}/me>"
        text += f"\n{base}{page}\n\nYou can turn these messages off at {base}/me\n"
    message.set_content(text)
    return message


def _send(mail: Mail, message: EmailMessage) -> None:
    password = os.environ.get(mail.password, "")
    if mail.user and not (password and password.isascii()):  # smtplib sends ASCII alone
        raise DeliveryError(f"the environment variable {mail.password} is empty, or not ASCII")
    with smtplib.SMTP(mail.host, mail.port, timeout=SECONDS) as smtp:
        if mail.tls:
            smtp.starttls(context=ssl.create_default_context())
        if mail.user:
            smtp.login(mail.user, password)
        smtp.send_message(message)
