"""What a load balancer and Prometheus ask of a running service."""

import httpx

from parts import wait_until


def test_health_needs_no_key(service):
    assert httpx.get(f"{service.url}/healthz").json() == {"status": "ok"}


def test_readiness_says_how_each_part_is_doing(service):
    answer = wait_until(lambda: (a := httpx.get(f"{service.url}/readyz")).status_code == 200 and a, 15)
    checks = answer.json()["checks"]
    assert set(checks) == {
        *("database", "migrations", "disk", "worker", "work", "watch", "outbox", "deliveries", "secret")
    }
    assert all(check["ok"] for check in checks.values())


def test_metrics_need_a_key_and_are_prometheus_text(service, project):
    url = f"{service.url}/metrics"
    assert httpx.get(url).status_code == 401
    answer = httpx.get(url, headers={"Authorization": f"Bearer {project.keys['read']}"})
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = dict(line.split() for line in answer.text.splitlines() if not line.startswith("#"))
    assert values["gapwatch_up"] == "1"
    assert float(values["gapwatch_worker_silent_seconds"]) < 20
    assert float(values["gapwatch_work_oldest_seconds"]) >= 0
    assert values["gapwatch_secret_right"] == "1"
    assert values["gapwatch_channels_unreadable"] == values["gapwatch_outbox_undelivered"] == "0"
