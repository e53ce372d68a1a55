"""A message with names that try to break out of it, and an egress that may reach this machine."""

from datetime import UTC, datetime, timedelta

from gapwatch.channels.egress import Egress
from gapwatch.channels.message import Message

EGRESS = Egress(allow_private=True)
NOW = datetime.now(UTC)
CONTENT = {
    "headline": "berlin <!channel> & line: success 91 % → 48 % (n 52), since 16 Nov 09:14 UTC",
    "severity": "warning",
    "deployment": "berlin-line-3",
    "site": "berlin",
    "stage": "full",
    "task": "pick-mug",
    "reasons": [{"kind": "drift", "sentence": "success fell <@U1> *much*."}],
    "category": {"category": "visual", "contribution": 0.2},
    "worst_slices": [],
    "changes": [],
    "robots": {"affected": ["ur5e-1"], "unaffected": []},
    "link": "https://gapwatch.example.com/alerts/7",
    "incident": 3,
    "opened_at": (NOW - timedelta(minutes=1)).isoformat(),
}


def message(action="trigger", **content):
    return Message("fleet-42", "fleet", action, "gapwatch/fleet/3", CONTENT | content, NOW, NOW)
