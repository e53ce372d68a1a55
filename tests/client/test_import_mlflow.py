"""MLflow runs, written by its own client into a directory of runs."""

import pytest
from mlflow.tracking import MlflowClient

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own, about its dependencies


def log_runs(client: MlflowClient, experiment: str) -> None:
    experiment_id = client.create_experiment(experiment)
    for number in range(3):
        run = client.create_run(experiment_id, start_time=1_793_600_000_000 + number * 60_000)
        run_id = run.info.run_id
        for name, value in {"policy": "bin-pick@1.4.0", "simulator": "mujoco@3.3.0", "learning_rate": 0.1}.items():
            client.log_param(run_id, name, value)
        client.log_param(run_id, "conditions.lighting", "dim")
        client.log_metric(run_id, "success", float(number != 1))
        client.log_metric(run_id, "return", 10.0 * number)
        client.log_metric(run_id, "cycle_time_s", 4.0)
        client.set_tag(run_id, "mlflow.source.git.commit", "abc123")
        client.set_terminated(run_id, end_time=1_793_600_005_000 + number * 60_000)
    client.create_run(experiment_id)
    crashed = client.create_run(experiment_id, start_time=1_793_601_000_000)
    client.log_param(crashed.info.run_id, "policy", "bin-pick@1.4.0")
    client.log_param(crashed.info.run_id, "simulator", "mujoco@3.3.0")
    client.set_terminated(crashed.info.run_id, "FAILED")


def test_runs_become_episodes_once(bring, stored, project, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    where = str(tmp_path / "mlruns")
    client = MlflowClient(tracking_uri=where)
    log_runs(client, "pick-mug")
    client.create_experiment("something else")
    status, told = bring(where, "--experiment", "pick-mug")
    assert status == 65, "one run has not ended"
    assert "1 episodes not sent: the run has not ended" in told
    first, second, third, crashed = stored()
    assert [e["outcome"] for e in (first, second, third, crashed)] == ["success", "failure", "success", "aborted"]
    assert first["task"] == "pick-mug"
    assert first["policy"] == {"name": "bin-pick", "version": "1.4.0"}
    assert first["simulator"] == {"name": "mujoco", "version": "3.3.0"}
    assert third["reward"] == 20
    assert third["metrics"] == {"cycle_time_s": 4}
    assert third["conditions"] == {"lighting": "dim"}
    assert third["duration_s"] == 5
    assert third["provenance"]["git_sha"] == "abc123"
    assert third["provenance"]["learning_rate"] == 0.1
    assert "0 new, 4 already there" in bring(where, "--experiment", "pick-mug")[1]
    assert project.stored() == 4


def test_an_experiment_that_is_not_there_is_told(bring, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    MlflowClient(tracking_uri=str(tmp_path / "mlruns")).create_experiment("pick-mug")
    status, told = bring(tmp_path / "mlruns", "--experiment", "pick-cup")
    assert status == 65
    assert "there is no experiment pick-cup" in told
