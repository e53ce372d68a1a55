"""The registry of channel kinds. Every module of this package is one kind and defines it as `KIND`."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from gapwatch.channels.kind import ChannelConfig, ChannelKind
from gapwatch.kind_registry import load_kinds

CHANNEL_KINDS: dict[str, ChannelKind] = load_kinds(__name__, __path__, ChannelKind)


@dataclass(frozen=True)
class StoredConfig:
    """A channel's configuration as it is stored, its secrets opened."""

    kind: str
    shown: dict[str, object]
    secrets: dict[str, object]


def split_secrets(kind: str, values: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Validate a configuration and split it into what may be shown and what may not."""
    known = CHANNEL_KINDS[kind]
    config = known.config.model_validate(values).model_dump(exclude_none=True)
    shown = {name: value for name, value in config.items() if name not in known.secrets}
    return shown, {name: value for name, value in config.items() if name in known.secrets}


def read_config(kind: str, shown: dict[str, object], secrets: dict[str, object]) -> ChannelConfig:
    return CHANNEL_KINDS[kind].config.model_validate({**shown, **secrets})


def secrets_that_stay(
    kind: str, values: dict[str, object], stored: StoredConfig | None
) -> tuple[dict[str, object], frozenset[str]]:
    """Of the stored secrets those that a change leaves out and that still go to whom they were given for; and the
    names of those that are dropped.
    """
    if stored is None:
        return {}, frozenset()
    known = CHANNEL_KINDS[kind]
    given = values.keys() & known.secrets
    left_out = {name: value for name, value in stored.secrets.items() if name not in given}
    if not left_out:
        return {}, frozenset()
    if kind == stored.kind:
        try:
            before = known.config.model_validate({**stored.shown, **stored.secrets})
            after = known.config.model_validate({**left_out, **values})
        except ValidationError:
            # Refused without the secrets too, or nobody knows any more what they were for.
            return {}, frozenset(left_out)
        if known.bound_to(before) == known.bound_to(after):
            return left_out, frozenset()
    return {}, frozenset(left_out)
