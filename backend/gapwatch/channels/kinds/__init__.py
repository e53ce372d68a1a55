"""The registry of channel kinds. Every module of this package is one kind and defines it as `KIND`."""

from __future__ import annotations

from gapwatch.channels.kind import ChannelConfig, ChannelKind
from gapwatch.kind_registry import load_kinds

CHANNEL_KINDS: dict[str, ChannelKind] = load_kinds(__name__, __path__, ChannelKind)


def split_secrets(kind: str, values: dict[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Validate a configuration and split it into what may be shown and what may not."""
    known = CHANNEL_KINDS[kind]
    config = known.config.model_validate(values).model_dump(exclude_none=True)
    shown = {name: value for name, value in config.items() if name not in known.secrets}
    return shown, {name: value for name, value in config.items() if name in known.secrets}


def read_config(kind: str, shown: dict[str, object], secrets: dict[str, object]) -> ChannelConfig:
    return CHANNEL_KINDS[kind].config.model_validate({**shown, **secrets})
