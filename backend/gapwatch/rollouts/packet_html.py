"""A packet as one HTML file that needs nothing else: for a review, a regulator, or a folder in ten years."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup, escape

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1c2024;
background:#fff}
table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}th,td{text-align:left;vertical-align:top;
padding:.35rem .6rem;border-bottom:1px solid #d9dde1;overflow-wrap:anywhere}h1{font-size:1.5rem}
h2{font-size:1.1rem;margin-top:2rem}
code,pre{font:13px/1.45 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}.pass{font-weight:600}
.fail{font-weight:600;text-decoration:underline}svg{width:100%;height:auto}
@media(prefers-color-scheme:dark){body{color:#e6e8ea;background:#16191c}th,td{border-color:#3a4046}}
@media(max-width:40rem){table,tbody,tr,th,td{display:block}thead{display:none}th,td{border:0;padding:.1rem 0}
tr{border-bottom:1px solid #d9dde1;padding:.5rem 0;display:block}td:empty{display:none}
td[data-of]::before{content:attr(data-of) ": "}}
"""


def packet_html(packet: dict[str, Any], packet_hash: str) -> str:
    if "decision" not in packet:
        title = f"{packet.get('deployment', 'A decision')}: {packet.get('kind', 'no evidence was kept')}"
        return _page(title, [_section("The packet", packet)], packet)
    decision, gate = packet["decision"], packet.get("gate")
    title = f"{packet['deployment']}: {decision['kind']}, {decision['from']} → {decision['to']}"
    parts = [
        Markup("<h1>{}</h1>").format(title),
        _facts(packet, packet_hash),
        Markup("<h2>Claims and what they rest on</h2>"),
        _criteria(gate) if gate else Markup("<p>There was no plan, so nothing was claimed.</p>"),
    ]
    if gate:
        parts += [
            Markup("<p>{}</p><p>{} looks. {}.</p>").format(gate["union"], gate["looks"], gate["method"]),
            *_paths(packet, gate),
            _plan(packet["plan"], packet["frozen_at"]),
            _section("The frozen plan in full", packet["plan"]),
            _section("Evidence: the query, its parameters and the hash of its rows", packet["evidence"]),
            _section("Versions", packet["versions"]),
            _section("Coverage of planned conditions", packet["coverage"] or "No cells were planned."),
            _section("Interventions and overrides", packet["interventions"]),
        ]
    parts.append(_list("Deviations from the plan", packet["deviations"]))
    return _page(title, parts, packet)


def _page(title: str, parts: list[Markup], packet: dict[str, Any]) -> str:
    # The whole packet rides along, so that the file alone can be verified.
    data = json.dumps(packet, sort_keys=True, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return str(
        Markup(
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            'content="width=device-width,initial-scale=1"><title>{}</title><style>{}</style></head><body><main>{}</main>'
            '<script type="application/json" id="packet">{}</script></body></html>\n'
        ).format(title, Markup(STYLE), Markup("").join(parts), Markup(data))  # noqa: S704 - our own text, closed tags broken
    )


def _facts(packet: dict[str, Any], packet_hash: str) -> Markup:
    decision, approved = packet["decision"], packet["approved_by"]
    fallback, drill = packet["fallback"], packet["drill"]
    rows = [
        ("Decided", f"{decision['at']} by {approved['who']} ({approved['role']})"),
        ("Reason", decision["reason"]),
        (
            "Gate",
            "overridden by an admin"
            if approved["override"]
            else (packet.get("gate") or {}).get("verdict", "no plan"),
        ),
        ("Policy", f"{packet['policy']['name']} {packet['policy']['version']}"),
        ("State after it", decision["state"]),
        ("Fallback", "none named" if fallback is None else f"{fallback['name']} {fallback['version']}"),
        ("Last drill", "never" if drill is None else _drill(drill)),
        ("Retention class", packet["retention"]),
        ("SHA-256 of this packet", packet_hash),
        ("Packet before it", packet.get("previous_hash") or "none: the first of this deployment"),
    ]
    return Markup("<table><tbody>{}</tbody></table>").format(
        Markup("").join(
            Markup('<tr><th scope="row">{}</th><td>{}</td></tr>').format(name, value) for name, value in rows
        )
    )


def _drill(drill: dict[str, Any]) -> str:
    seconds = drill["seconds"]
    took = "not measured" if seconds is None else f"{seconds:.2f} s"
    return f"{drill['at']}, {took}" + (", older than 90 days" if drill["older_than_90_days"] else "")


def _criteria(gate: dict[str, Any]) -> Markup:
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("claim", "wanted", "measured", "interval", "n", "e-value", "α", "verdict")
    )
    rows = Markup("").join(
        Markup(
            '<tr><td>{}</td><td data-of="wanted">{}</td><td data-of="measured">{}</td>'
            '<td data-of="interval">{}</td><td data-of="n">{}</td>'
            '<td data-of="e-value">{}</td><td data-of="α">{}</td><td>{}</td></tr>'
        ).format(
            found["claim"],
            found["wanted"],
            _number(found["measured"]),
            "" if found["interval"] is None else " to ".join(_number(limit) for limit in found["interval"]),
            found["n"],
            _number(found["e_value"]),
            _number(found["alpha"]),
            Markup('<span class="{}">{}</span><br>{}').format(
                found["verdict"].split()[0], found["verdict"], found["note"]
            ),
        )
        for found in gate["criteria"]
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(Markup(head), rows)  # noqa: S704


def _paths(packet: dict[str, Any], gate: dict[str, Any]) -> list[Markup]:
    alphas = {found["id"]: found["alpha"] for found in gate["criteria"]}
    return [_path(name, path, alphas.get(name) or 0.05) for name, path in packet["paths"].items()]


def _path(name: str, path: list[dict[str, float]], alpha: float) -> Markup:
    """The e-value over the episodes, with the line that it has to reach."""
    from math import log10

    line = log10(1 / alpha)
    last = max(point["n"] for point in path)
    top = max(line * 1.2, *(point["log10_e"] for point in path))
    low = min(-1.0, *(point["log10_e"] for point in path))

    def y(value: float) -> float:
        return 150 - 130 * (value - low) / (top - low)

    points = " ".join(f"{40 + 700 * point['n'] / last:.1f},{y(point['log10_e']):.1f}" for point in path)
    return Markup(
        '<h3>e-value of {}</h3><svg viewBox="0 0 780 175" role="img" aria-label="e-value of {} over {} episodes">'
        '<line x1="40" x2="740" y1="{}" y2="{}" stroke="currentColor" stroke-dasharray="5 4"/>'
        '<text x="745" y="{}" font-size="11" fill="currentColor">1/α</text>'
        '<polyline points="{}" fill="none" stroke="#2f6fbb" stroke-width="2"/>'
        '<text x="40" y="170" font-size="11" fill="currentColor">1</text>'
        '<text x="740" y="170" font-size="11" fill="currentColor" text-anchor="end">{} episodes</text></svg>'
    ).format(name, name, last, f"{y(line):.1f}", f"{y(line):.1f}", f"{y(line) + 4:.1f}", points, last)


def _plan(plan: dict[str, Any], frozen_at: str) -> Markup:
    reference, power = plan["reference"], plan["power"]
    words = [f"Frozen {frozen_at}: a margin of {100 * plan['margin']:g} points, α {plan['alpha']:g}."]
    if reference is not None:
        rate = f"{reference['successes']} of {reference['n']} episodes"
        words.append(f"Reference: {reference['simulator']} {reference['version']}, {rate}.")
    words += [
        f"At a true drop of {100 * row['true_drop']:g} points it takes "
        f"{row['median_episodes'] or 'more than 5,000'} episodes (median)."
        for row in power
    ]
    if plan.get("expected_episodes"):
        words.append(f"{plan['expected_episodes']} episodes were expected in the stage.")
    return _list("The plan", words)


def _section(title: str, value: Any) -> Markup:
    shown = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    return Markup("<h2>{}</h2><details><summary>Show</summary><pre>{}</pre></details>").format(title, shown)


def _list(title: str, sentences: list[str]) -> Markup:
    items = Markup("").join(Markup("<li>{}</li>").format(sentence) for sentence in sentences or ["None."])
    return Markup("<h2>{}</h2><ul>{}</ul>").format(title, items)


def _number(value: float | None) -> str:
    return "" if value is None else str(escape(f"{value:.4g}"))
