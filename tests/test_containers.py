"""The image and docker-compose.yml: as files, and their very commands and health checks as processes."""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest
import yaml

from gapwatch import embedded
from gapwatch.cli import main
from gapwatch.settings import ROOT, unknown_variables
from parts import clean_environment, wait_until

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
INSTRUCTIONS = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line and line[0] != "#"]
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE = yaml.safe_load(COMPOSE_TEXT)
SERVICES = COMPOSE["services"]
PARTS = ("migrate", "web", "worker", "beat")
BIN = Path(sys.executable).parent


def argument(instruction: str) -> str:
    """What the last instruction of a kind says: the one that holds for the image."""
    return [rest for word, rest in INSTRUCTIONS if word == instruction][-1]


def run(*argv: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30, check=False)


def test_hadolint_has_nothing_to_say_about_the_dockerfile():
    done = run(BIN / "hadolint", ROOT / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_image_runs_gapwatch_as_an_unprivileged_user_without_build_tools():
    assert json.loads(argument("ENTRYPOINT")) == ["gapwatch"]
    assert json.loads(argument("CMD"))[0] in main.commands
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", argument("USER"))
    runtime = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    assert not re.search(r"apt-get|pip install|gcc|build-essential", runtime)
    assert all(re.search(r":\d+\.\d+-", rest) for word, rest in INSTRUCTIONS if word == "FROM")


def test_what_the_dockerfile_copies_exists_and_is_not_ignored():
    let_through = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = [rest.split()[:-1] for word, rest in INSTRUCTIONS if word == "COPY" and "--from" not in rest]
    sources = [source for sources in copied for source in sources]
    assert sorted(sources) == sorted(let_through)
    assert all((ROOT / source).exists() for source in sources)


@pytest.mark.skipif(not shutil.which("docker"), reason="Docker is not installed")
def test_compose_accepts_its_file():
    if run("docker", "compose", "version").returncode != 0:
        pytest.skip("Docker Compose is not installed")
    # This reads the file only; no engine is needed.
    done = run("docker", "compose", "--file", ROOT / "docker-compose.yml", "config", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_compose_uses_words_and_durations_of_the_specification():
    known = {
        *("image", "build", "command", "user", "environment", "secrets", "volumes", "tmpfs", "shm_size"),
        *("networks", "ports", "depends_on", "healthcheck", "restart", "stop_grace_period", "init"),
        *("read_only", "cap_drop", "security_opt"),
    }
    durations = {"interval", "timeout", "start_period", "stop_grace_period"}
    for service in SERVICES.values():
        check = service.get("healthcheck", {})
        assert set(service) <= known
        assert set(check) <= {"test", "disable", "retries", *durations}
        for word, value in [*service.items(), *check.items()]:
            assert word not in durations or re.fullmatch(r"\d+s", value)


def test_compose_has_the_six_services_and_one_image_for_all_parts():
    assert set(SERVICES) == {"db", "redis", *PARTS}
    assert {(SERVICES[part]["image"], SERVICES[part]["build"]) for part in PARTS} == {("gapwatch", ".")}
    for part in PARTS:
        assert SERVICES[part]["command"][0] in main.commands


def test_what_services_refer_to_is_declared_and_what_is_declared_is_used():
    for kind in ("volumes", "networks", "secrets"):
        used = {name.split(":")[0] for service in SERVICES.values() for name in service.get(kind, [])}
        assert used == set(COMPOSE[kind]), kind
    for service in SERVICES.values():
        files = [value for name, value in service.get("environment", {}).items() if name.endswith("_FILE")]
        assert sorted(files) == sorted(f"/run/secrets/{name}" for name in service.get("secrets", []))


def test_services_start_after_what_they_need():
    conditions = {
        name: {needed: how["condition"] for needed, how in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    migrated = {
        "db": "service_healthy",
        "redis": "service_healthy",
        "migrate": "service_completed_successfully",
    }
    assert conditions == {
        "db": {},
        "redis": {},
        "migrate": {"db": "service_healthy"},
        "web": migrated,
        "worker": migrated,
        "beat": migrated,
    }


def test_every_service_that_stays_has_a_health_check_and_is_restarted():
    for name, service in SERVICES.items():
        if name == "migrate":
            assert service["healthcheck"] == {"disable": True}
            assert service["restart"] == "no"
            continue
        assert service["restart"] == "unless-stopped", name
        # Web has the image's.
        assert name == "web" or service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name
    assert "/healthz" in argument("HEALTHCHECK")


def test_compose_holds_no_secret():
    assert not re.search(r"://[^\s/@]*:[^\s/@$]+@", COMPOSE_TEXT)
    for service in SERVICES.values():
        for name in service.get("environment", {}):
            assert not re.search(r"(PASSWORD|SECRET_KEY|DATABASE_URL)$", name), name
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "/secrets/" in ignored
    assert all(secret["file"].startswith("./secrets/") for secret in COMPOSE["secrets"].values())


def test_the_settings_in_the_files_are_settings():
    names = re.findall(r"\bGAPWATCH_\w+", DOCKERFILE + COMPOSE_TEXT)
    assert unknown_variables(dict.fromkeys(names, "")) == []


def test_our_containers_have_no_privileges_and_write_only_to_volumes():
    for name in (*PARTS, "redis"):
        assert SERVICES[name]["read_only"], name
        assert SERVICES[name]["cap_drop"] == ["ALL"], name
    assert all(service["security_opt"] == ["no-new-privileges:true"] for service in SERVICES.values())


def test_only_web_is_reachable_and_only_from_this_machine_unless_asked():
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    assert interpolated(SERVICES["web"]["ports"][0]) == "127.0.0.1:8000:8000"
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert SERVICES["db"]["networks"] == SERVICES["redis"]["networks"] == ["inside"]


def interpolated(value: str) -> str:
    """A value as Compose reads it when none of its variables is set."""
    while (shorter := re.sub(r"\$\{\w+:-([^{}]*)\}", r"\1", value)) != value:
        value = shorter
    return value


def container_environment(part: str, directory: Path, **replaced: str) -> dict[str, str]:
    """The image's and Compose's settings; `replaced` ones, and those in secrets, are this test's."""
    of_image = dict(re.findall(r"(GAPWATCH_\w+)=(\S+)", argument("ENV")))
    of_part = {name: interpolated(str(value)) for name, value in SERVICES[part]["environment"].items()}
    settings = of_image | of_part | replaced
    for name, path in settings.items():
        if name.endswith("_FILE"):
            settings[name] = str(directory / Path(path).name)
    return clean_environment(**settings) | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


@contextmanager
def running(part: str, environment: dict[str, str], log: Path):
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "gapwatch", *SERVICES[part]["command"]],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        # What is left of it: a killed worker leaves its pool processes.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def redis_url():
    run_dir = embedded.make_run_dir(None)
    try:
        with embedded.running(embedded.prepare_redis(run_dir, None)) as server:
            yield server.url
    finally:
        shutil.rmtree(run_dir)


def test_the_commands_make_a_ready_service_and_the_health_checks_tell_the_truth(
    tmp_path, empty_database_url, redis_url
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    (tmp_path / "database-url").write_text(f"{empty_database_url}\n")
    (tmp_path / "secret-key").write_text(f"{secrets.token_hex(32)}\n")
    replaced = {"GAPWATCH_REDIS_URL": redis_url, "GAPWATCH_PORT": port, "GAPWATCH_DATA_DIR": str(tmp_path)}
    environments = {part: container_environment(part, tmp_path, **replaced) for part in PARTS}
    logs = {part: tmp_path / f"{part}.log" for part in PARTS}

    def is_healthy(part: str) -> bool:
        of_image = ["CMD", *json.loads(argument("HEALTHCHECK").split("CMD", 1)[1])]
        kind, *argv = SERVICES[part].get("healthcheck", {"test": of_image})["test"]
        assert kind == "CMD"
        return run(*argv, env=environments[part]).returncode == 0

    def is_ready() -> bool:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200

    with running("migrate", environments["migrate"], logs["migrate"]) as migrate:
        assert migrate.wait(30) == 0, logs["migrate"].read_text()
    assert not is_healthy("web")
    assert not is_healthy("worker")
    with running("web", environments["web"], logs["web"]):
        with (
            running("worker", environments["worker"], logs["worker"]),
            running("beat", environments["beat"], logs["beat"]),
        ):
            wait_until(is_ready, 30, what="readiness")
            assert {part: is_healthy(part) for part in PARTS[1:]} == dict.fromkeys(PARTS[1:], True)
        with psycopg.connect(empty_database_url) as connection:
            connection.execute("UPDATE heartbeats SET beat_at = beat_at - interval '1 minute'")
        assert {part: is_healthy(part) for part in PARTS[1:]} == {"web": True, "worker": False, "beat": False}
    assert not is_healthy("web")
    for part in PARTS:
        lines = [json.loads(line) for line in logs[part].read_text().splitlines() if line.startswith("{")]
        assert all(line["part"] == part for line in lines)
        assert not any(line["level"] == "error" for line in lines), lines
