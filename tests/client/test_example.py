"""The example, as its README says to run it, in a short version."""

import subprocess
import sys

from gapwatch.settings import ROOT
from parts import clean_environment


def test_the_cart_loses_what_its_delay_and_noise_cost(project, tmp_path):
    argv = [sys.executable, ROOT / "examples" / "cartpole.py", "--url", project.url, "--episodes", "24"]
    argv += ["--key", project.keys["ingest"], "--spool", tmp_path / "spool"]
    done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"48 episodes are at {project.url}/deployments/workshop-cart\n"
    outcomes = dict(
        project.rows(
            "SELECT domain, count(*) FILTER (WHERE outcome = 'success') FROM episodes WHERE project_id = :p GROUP BY 1"
        )
    )
    assert outcomes["sim"] == 24
    assert 6 <= outcomes["real"] <= 21
    with project.client("read") as reader:
        episodes = reader.get("/episodes", params={"limit": 100}).json()["episodes"]
    pairs = {side: sorted(e["pair"] for e in episodes if e["domain"] == side) for side in ("sim", "real")}
    assert pairs["sim"] == pairs["real"] == sorted(f"seed-{n}" for n in range(24))
    assert {e["contract"]["control_hz"] for e in episodes} == {50}
    worst = [e for e in episodes if e.get("session") == "day-4"]
    assert min(e["signals"]["loop_latency_ms_p95"] for e in worst) == 80
