"""Episodes as a hostile robot would send them: every free text is a payload."""

from __future__ import annotations

import random

from parts import episode

# What a hostile robot would call things. `shout` would be heard by every test.
IMAGE = "<img src=x onerror=shout(1)>"
SCRIPT = "</script><script>shout(2)</script>"
LINK = '<a href="javascript:shout(3)">x</a>'
BOLD = '"><b onmouseover=shout(4)>{{7*7}}'
MATH = "$\\href{javascript:shout(5)}{x}$ &lt;i&gt;"
PAYLOADS = (IMAGE, SCRIPT, LINK, BOLD, MATH)


def hostile_story() -> list[dict]:
    """Two hundred episodes of one deployment in which every free text is a payload."""
    chance = random.Random(11)
    records = []
    for number in range(240):
        real = number >= 120
        fails = chance.random() < (0.4 if real else 0.05)
        record = episode(
            domain="real" if real else "sim",
            policy={"name": BOLD, "version": SCRIPT},
            task=IMAGE,
            deployment="hostile<b>" if real else None,
            simulator=None if real else {"name": LINK, "version": MATH},
            robot=PAYLOADS[number % 5] if real else None,
            site=SCRIPT if real else None,
            stage="supervised" if real else None,
            started_at=f"2026-10-{1 + (number % 120) // 5:02}T10:00:00Z",
            outcome="failure" if fails else "success",
            session=f"{IMAGE}{number % 9}",
            pair=f"{LINK}{number % 120}",
            conditions={SCRIPT: PAYLOADS[number % 5], "lighting": chance.choice(["dim", "bright"])},
            signals={IMAGE: chance.gauss(31 if real else 25, 3), "peak_force_n": chance.gauss(30, 2)},
            metrics={BOLD: chance.gauss(5, 1)},
            contract={MATH: SCRIPT if real else LINK},
            provenance={LINK: IMAGE},
            links={"video": "https://video.example/1?x=<b>"},
            failure={"phase": IMAGE, "labels": [SCRIPT, "slip"], "note": f"{SCRIPT} {LINK}"} if fails else None,
        )
        records.append(record)
    return records
