"""Sends deliveries: note that it begins, then send and mark as sent. After a kill it is sent again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import structlog

from gapwatch.access.sealing import Sealer
from gapwatch.alerts import delivery_queue
from gapwatch.channels.cleaning import cleaned
from gapwatch.channels.egress import Egress
from gapwatch.channels.kinds import CHANNEL_KINDS, email, read_config
from gapwatch.channels.kinds.email import EmailConfig
from gapwatch.channels.message import Attempt, Message, ToldReason
from gapwatch.channels.retired import problem_of
from gapwatch.errors import ServiceUnavailable
from gapwatch.store.alerting import mail_addresses, outbox
from gapwatch.store.alerting.mail_addresses import MailAddress
from gapwatch.store.alerting.outbox import ClaimedDelivery, lock_begun
from gapwatch.store.core.database import Connection, Database

log = structlog.get_logger()

# A slow receiver holds up one of these, not the others.
SENDERS = 3


class Sender:
    """`confirm_link` makes the link with which an address says that it wants alerts."""

    def __init__(
        self, database: Database, sealer: Sealer, egress: Egress, confirm_link: Callable[[MailAddress], str]
    ) -> None:
        self._database = database
        self._sealer = sealer
        self._egress = egress
        self._confirm_link = confirm_link

    def send_due(self) -> int:
        """Send until nothing is due; return the number of attempts."""
        with ThreadPoolExecutor(SENDERS, thread_name_prefix="sender") as pool:
            return sum(pool.map(lambda _: self._send_until_empty(), range(SENDERS)))

    def _send_until_empty(self) -> int:
        done = 0
        while (delivery := self._database.run(delivery_queue.claim)) is not None:
            done += self._database.run(partial(self._send, delivery))
        return done

    def _send(self, delivery: ClaimedDelivery, connection: Connection) -> int:
        if not lock_begun(connection, delivery):
            return 0
        attempt = self._try(connection, delivery)
        verdict = delivery_queue.record_attempt(connection, delivery, attempt)
        if attempt.outcome != "sent":
            log.warning(
                "delivery not accepted",
                delivery_id=delivery.id,
                channel_id=delivery.channel_id,
                status=attempt.status,
                gives_up=verdict.state == "dead",
            )
        return 1

    def _try(self, connection: Connection, delivery: ClaimedDelivery) -> Attempt:
        """Make one attempt. An error in a channel becomes its answer and does not stop the sender."""
        secrets = self._sealer.open(delivery.sealed)
        if not delivery.enabled:
            return Attempt("refused", None, "the channel is switched off", 0)
        if problem := problem_of(delivery.kind):
            return Attempt("refused", None, problem, 0)
        if secrets is None:
            return Attempt(
                "unready", None, "the channel's secrets are of another server secret; set them again", 0
            )
        try:
            return cleaned(self._call(connection, delivery, secrets), secrets, delivery.config)
        except ServiceUnavailable:
            raise
        except Exception as error:
            log.exception("channel failed", delivery_id=delivery.id, kind=delivery.kind)
            return Attempt("refused", None, f"the channel failed: {type(error).__name__}", 0)

    def _call(self, connection: Connection, delivery: ClaimedDelivery, secrets: dict[str, object]) -> Attempt:
        config = read_config(delivery.kind, delivery.config, secrets)
        if isinstance(config, EmailConfig):
            return self._mail(connection, config, delivery)
        told = outbox.told_before(connection, delivery) if delivery.incident_id is not None else []
        return CHANNEL_KINDS[delivery.kind].send(config, message_of(delivery, told), self._egress)

    def _mail(self, connection: Connection, config: EmailConfig, delivery: ClaimedDelivery) -> Attempt:
        """Mail the addresses that have confirmed, or ask one whether it wants alerts."""
        known = mail_addresses.addresses_of(connection, delivery.project_id, delivery.config)
        if delivery.action == "confirm":
            wanted = delivery.content["address"]
            asked = next((a for a in known if a.address == wanted and a.confirmed_at is None), None)
            if asked is None:
                return Attempt("refused", None, "the address has confirmed, or is not in the channel any more", 0)
            message, link = message_of(delivery), self._confirm_link(asked)
            question = email.AddressQuestion(message.id, asked.address, message.project, link, message.now)
            return email.send_question(config, question, self._egress)
        confirmed = [address.address for address in known if address.confirmed_at is not None]
        waiting = [address for address in config.to if address not in confirmed]
        if not confirmed:
            return Attempt("refused", None, f"{mail_addresses.WAITING}: {', '.join(waiting)}", 0)
        attempt = email.send(config.model_copy(update={"to": confirmed}), message_of(delivery), self._egress)
        if waiting:
            attempt = replace(attempt, answer=f"{attempt.answer}; {mail_addresses.WAITING}: {', '.join(waiting)}")
        return attempt


def message_of(delivery: ClaimedDelivery, told: Sequence[ToldReason] = ()) -> Message:
    project = delivery.dedup_key.split("/")[1]
    return Message(
        # By name: the number of a project tells how many there are.
        id=f"{project}-{delivery.id}",
        project=project,
        action=delivery.action,
        dedup_key=delivery.dedup_key,
        content=delivery.content,
        created_at=delivery.created_at,
        now=datetime.now(UTC),
        told=told,
    )
