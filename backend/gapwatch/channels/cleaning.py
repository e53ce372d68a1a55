"""What an attempt may leave in the log: what its own call returned, bounded, and without the channel's secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from gapwatch.channels.egress import SHOWN_ANSWER
from gapwatch.channels.message import Attempt

HIDDEN = "[secret]"
# Parts of a secret address that are shorter are words such as `services`, not tokens.
SHORTEST_PART = 8
# So much of a secret at the very end of an answer that was cut is taken away too.
SHORTEST_TAIL = 4


def cleaned(attempt: Attempt, secrets: Mapping[str, object], shown: Mapping[str, object]) -> Attempt:
    """The attempt with every spelling of a secret taken out of its answer."""
    answer = attempt.answer
    # The longest first: an address contains its token.
    spellings = sorted(_spellings(secrets, shown), key=len, reverse=True)
    for spelling in spellings:
        answer = answer.replace(spelling, HIDDEN)
    answer = _without_tail(answer[:SHOWN_ANSWER], spellings)
    return attempt if answer == attempt.answer else replace(attempt, answer=answer)


def _spellings(secrets: Mapping[str, object], shown: Mapping[str, object]) -> set[str]:
    plain: set[str] = set()
    for secret in _texts(secrets.values()):
        plain.add(secret)
        if secret.startswith(("http://", "https://")):
            plain |= _parts_of_address(secret)
    if "password" in secrets:
        # As it goes over the wire with a user name, by HTTP and by SMTP.
        user, password = str(shown.get("username", "")), str(secrets["password"])
        pairs = (f"{user}:{password}", f"\0{user}\0{password}", password)
        plain |= {base64.b64encode(pair.encode()).decode() for pair in pairs}
    encoded = {spell(word) for word in plain for spell in (quote, quote_plus, _in_json)}
    return {word for word in plain | encoded if word}


def _parts_of_address(url: str) -> set[str]:
    parts = urlsplit(url)
    words = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query)), parts.query]
    return {spelled for word in words if len(word) >= SHORTEST_PART for spelled in (word, unquote(word))}


def _texts(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        yield from (str(part) for part in (value if isinstance(value, list | tuple) else [value]))


def _in_json(word: str) -> str:
    return json.dumps(word)[1:-1]


def _without_tail(answer: str, spellings: Iterable[str]) -> str:
    """An answer that was cut may end within a secret."""
    longest = max(
        (
            length
            for spelling in spellings
            for length in range(SHORTEST_TAIL, len(spelling))
            if answer.endswith(spelling[:length])
        ),
        default=0,
    )
    return answer[: len(answer) - longest] + HIDDEN if longest else answer
