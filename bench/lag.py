"""The lag from accepted to counted: one episode of each batch belongs to its own deployment, and we record when
that deployment first appears in the counts."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from bench.records import BATCH, encode, make_records, write_bodies
from bench.senders import Sent, quantile, send_paced
from bench.service import Service, Wrong

LOOK_EVERY_S = 0.05
PATTERNS = 10
MARKER = b"marker-%06d"

SEEN = """
SELECT DISTINCT d.slug FROM rollup_counts r
JOIN deployments d ON d.project_id = r.project_id AND d.id = r.source_id
WHERE r.project_id = %s AND r.domain = 'real' AND r.tier = 'month' AND starts_with(d.slug, 'marker-')
"""


@dataclass
class Lag:
    lags_s: list[float]
    sent: Sent

    def share_s(self, share: float) -> float:
        return quantile(self.lags_s, share)


def measure_lag(
    service: Service, sender: Executor, directory: Path, *, seconds: float, episodes_per_second: int
) -> Lag:
    """We look only every LOOK_EVERY_S, so a figure is too high by up to that, never too low."""
    count = round(seconds * episodes_per_second / BATCH)
    bodies = []
    for number in range(PATTERNS):
        records = make_records(BATCH, seed=1000 + number)
        records[-1]["deployment"] = (MARKER % 0).decode()
        bodies.append((BATCH, encode(records)))
    sending = sender.submit(
        send_paced,
        service.target("/episodes/batch"),
        write_bodies(directory / "paced", bodies),
        count=count,
        per_second=episodes_per_second / BATCH,
        connections=4,
        marker=MARKER,
    )
    seen_at: dict[str, float] = {}
    deadline = time.monotonic() + seconds + 60
    with service.connect() as connection:
        while len(seen_at) < count and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
            if sending.done() and sending.exception():
                break
            slugs = connection.execute(SEEN, [service.project_id]).fetchall()
            now = time.time()
            for (slug,) in slugs:
                seen_at.setdefault(slug, now)
    sent, acknowledged = sending.result()
    if len(seen_at) < count:
        raise Wrong(f"{count - len(seen_at)} of {count} batches were never seen in the numbers")
    # It may be counted before the answer has arrived: that is no delay.
    lags = [max(0.0, seen_at[(MARKER % i).decode()] - at) for i, at in enumerate(acknowledged)]
    return Lag(lags, sent)
