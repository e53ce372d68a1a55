"""E-mail by SMTP: plain text, the headline as the subject, one thread an incident."""

from __future__ import annotations

import contextlib
import smtplib
import socket
import ssl
import time
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gapwatch.access.tokens import ADDRESS_LASTS
from gapwatch.channels.egress import ANSWER_WITHIN_S, SHOWN_ANSWER, Egress, EgressRefused, cut_off
from gapwatch.channels.kind import ChannelConfig, ChannelKind, Line, Text
from gapwatch.channels.message import Attempt, Message

OK, PERMANENT = 250, 500
# The whole conversation, of which each answer may take ten seconds.
MAIL_WITHIN_S = 25.0


def _address(address: str) -> str:
    name, at, host = address.rpartition("@")
    if not at or not name or not host:
        raise ValueError("must be an e-mail address")
    return address


Address = Annotated[Line, AfterValidator(_address)]


class EmailConfig(ChannelConfig):
    to: Annotated[list[Address], Field(min_length=1, max_length=50)]
    sender: Address
    host: Line
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: Text | None = None
    password: Text | None = None


def send(config: EmailConfig, message: Message, egress: Egress) -> Attempt:
    return _send(config, compose(config, message), egress)


def send_question(config: EmailConfig, question: AddressQuestion, egress: Egress) -> Attempt:
    """Ask one address whether it wants alerts."""
    return _send(config.model_copy(update={"to": [question.address]}), compose_question(config, question), egress)


@dataclass(frozen=True)
class AddressQuestion:
    """Whether alerts of a project may be sent to an address; `id` stays the same over all tries."""

    id: str
    address: str
    project: str
    link: str
    now: datetime


def _send(config: EmailConfig, mail: EmailMessage, egress: Egress) -> Attempt:
    started = time.monotonic()

    def attempt(outcome: str, status: int | None, answer: str) -> Attempt:
        took_ms = round(1000 * (time.monotonic() - started))
        return Attempt(outcome, status, answer[:SHOWN_ANSWER], took_ms)  # type: ignore[arg-type]

    try:
        status, answer = _exchange(config, mail, egress)
    except EgressRefused as error:
        return attempt("refused", None, str(error))
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        outcome = "refused" if min(codes) >= PERMANENT else "retry"
        return attempt(outcome, codes[0], f"no recipient was accepted: {codes}")
    except smtplib.SMTPResponseException as error:
        words = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else ""
        outcome = "refused" if error.smtp_code >= PERMANENT else "retry"
        return attempt(outcome, error.smtp_code, words or str(error.smtp_error))
    except (smtplib.SMTPException, OSError) as error:
        return attempt("retry", None, f"{type(error).__name__}: {error}")
    return attempt("sent", status, answer)


def compose(config: EmailConfig, message: Message) -> EmailMessage:
    mail = _headed(config, config.to, message.headline, message.id, message.now)
    thread = f"<{message.dedup_key.replace('/', '.')}@{_domain(config)}>"
    mail["References"] = mail["In-Reply-To"] = _one_line(thread)
    mail.set_content("\n".join([message.headline, "", *message.lines(), "", message.link]))
    return mail


def compose_question(config: EmailConfig, question: AddressQuestion) -> EmailMessage:
    subject = f"May Gapwatch send alerts of {question.project} to you?"
    mail = _headed(config, [question.address], subject, question.id, question.now)
    lines = [
        f"Somebody wants alerts of the project {question.project} to be sent to {question.address}.",
        "Until you agree, none are.",
        f"To agree, open this page within {ADDRESS_LASTS.days} days and press its button:",
        "",
        question.link,
        "",
        "If this is not for you, do nothing.",
    ]
    mail.set_content("\n".join(lines))
    return mail


def _headed(config: EmailConfig, to: list[str], subject: str, mail_id: str, now: datetime) -> EmailMessage:
    """The library refuses whatever `splitlines` splits at, so that nothing in a name can add a header; the mail
    would then not go out at all.
    """
    mail = EmailMessage()
    mail["Subject"] = _one_line(subject)
    mail["From"] = _one_line(config.sender)
    mail["To"] = _one_line(", ".join(to))
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = _one_line(f"<{mail_id}@{_domain(config)}>")
    mail["Auto-Submitted"] = "auto-generated"
    return mail


def _one_line(text: str) -> str:
    """Everything at which `splitlines` splits, among them U+0085 and U+2028, is a space."""
    return " ".join(text.splitlines())


def _domain(config: EmailConfig) -> str:
    return config.sender.rpartition("@")[2]


def _exchange(config: EmailConfig, mail: EmailMessage, egress: Egress) -> tuple[int, str]:
    address = egress.resolve_mail_server(
        config.host,
        config.port,
        is_encrypted=config.security != "none",
        has_password=bool(config.username and config.password),
    )
    context = ssl.create_default_context()
    client: smtplib.SMTP
    if config.security == "tls":
        client = _TlsToAddress(config.host, timeout=ANSWER_WITHIN_S, context=context)
    else:
        client = smtplib.SMTP(timeout=ANSWER_WITHIN_S)

    def sockets() -> list[socket.socket]:
        # The time-out of a handshake is of the whole; there is none yet while it lasts.
        return [] if client.sock is None else [client.sock]

    with cut_off(MAIL_WITHIN_S, sockets), contextlib.closing(client):
        client.connect(address, config.port)
        if config.security == "starttls":
            # Certificates are of the name, the connection is to the address that was checked.
            client._host = config.host  # type: ignore[attr-defined]
            client.starttls(context=context)
        if config.username and config.password:
            client.login(config.username, config.password)
        client.ehlo_or_helo_if_needed()
        code, words = client.mail(config.sender)
        if code != OK:
            raise smtplib.SMTPResponseException(code, words)
        refused = {to: answer for to in config.to if (answer := client.rcpt(to))[0] not in {250, 251}}
        if len(refused) == len(config.to):
            raise smtplib.SMTPRecipientsRefused(refused)
        code, words = client.data(mail.as_bytes())
        if code != OK:
            raise smtplib.SMTPResponseException(code, words)
        reply = words.decode("utf-8", "replace")
        return code, reply + (f"; refused: {sorted(refused)}" if refused else "")


class _TlsToAddress(smtplib.SMTP_SSL):
    """TLS from the start, with the certificate of a name at an address that was checked."""

    def __init__(self, name: str, *, timeout: float, context: ssl.SSLContext) -> None:
        self._name = name
        super().__init__(timeout=timeout, context=context)

    def _get_socket(self, host: str, port: int, timeout: float) -> ssl.SSLSocket:
        plain = smtplib.SMTP._get_socket(self, host, port, timeout)  # type: ignore[attr-defined]
        return self.context.wrap_socket(plain, server_hostname=self._name)


KIND = ChannelKind(
    label="e-mail over SMTP",
    config=EmailConfig,
    send=send,
    secrets=frozenset({"password"}),
    freely_changed=frozenset({"to", "sender"}),
    hints={"to": "one address a line", "sender": "gapwatch@example.com", "host": "smtp.example.com"},
    note="Each address is sent a link and gets alerts once it has confirmed.",
    remarks="SMTP; one thread an incident; each address confirms first",
)
