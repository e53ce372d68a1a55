"""What the client's documents tell people to paste works: Python, shell, and C++ against the real libcurl."""

import ast
import re
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

from gapwatch.settings import ROOT
from parts import clean_environment

README = (ROOT / "client" / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "client.md").read_text()

# The declarations the example uses, for machines that have libcurl but not its headers.
CURL_H = """
#pragma once
typedef void CURL;
struct curl_slist;
enum { CURLE_OK = 0 };
enum { CURLOPT_URL = 10002, CURLOPT_HTTPHEADER = 10023, CURLOPT_POSTFIELDS = 10015, CURLOPT_TIMEOUT_MS = 155 };
enum { CURLINFO_RESPONSE_CODE = 0x200002 };
extern "C" {
CURL* curl_easy_init();
int curl_easy_setopt(CURL*, int, ...);
int curl_easy_perform(CURL*);
int curl_easy_getinfo(CURL*, int, ...);
void curl_easy_cleanup(CURL*);
curl_slist* curl_slist_append(curl_slist*, const char*);
void curl_slist_free_all(curl_slist*);
}
"""


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def environment(project, tmp_path):
    settings = {"GAPWATCH_URL": project.url, "GAPWATCH_KEY": project.keys["ingest"]}
    return clean_environment(**settings, GAPWATCH_SPOOL=str(tmp_path / "spool"))


def run(argv, environment, tmp_path):
    done = subprocess.run(
        argv, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_five_lines_pasted_send_an_episode(project, environment, tmp_path):
    script = blocks(README, "python")[0].replace("http://127.0.0.1:8000", project.url)
    run([sys.executable, "-c", script.replace("gw_…", project.keys["ingest"])], environment, tmp_path)
    assert project.value("SELECT outcome FROM episodes WHERE project_id = :p") == "failure"
    assert len([line for line in blocks(README, "python")[0].splitlines() if line and "import" not in line]) <= 5


def test_the_gymnasium_block_sends_an_episode(project, environment, tmp_path):
    [script] = [block for block in blocks(README, "python") if "RecordEpisodes(" in block]
    run([sys.executable, "-c", script], environment, tmp_path)
    assert project.stored() == 1


def test_the_contract_block_builds_one(tmp_path):
    [script] = [block for block in blocks(REFERENCE, "python") if "Contract(" in block]
    told = run(
        [sys.executable, "-c", script + "\nprint(contract.as_dict()['gains'])"], clean_environment(), tmp_path
    )
    assert told == "{'kp': [100, 80], 'kd': [2, 1.5]}\n"


def test_the_block_of_a_robot_that_rests_says_what_the_client_takes(tmp_path):
    [script] = [block for block in blocks(REFERENCE, "python") if "gw.parked(" in block]
    opening = "from datetime import timedelta\nfrom gapwatch_client import Gapwatch\n"
    opening += "gw = Gapwatch('http://127.0.0.1:9', 'gw_x', 'spool', robot='ur5e-012')\n"
    told = run(
        [sys.executable, "-c", opening + script + "\nprint(gw.status().get('complaints'), len(gw._statuses))"],
        clean_environment(),
        tmp_path,
    )
    assert told == "None 1\n"


def test_the_ros_node_is_python_that_calls_what_the_client_has():
    from gapwatch_client import Episode, Gapwatch

    [script] = [block for block in blocks(README, "python") if "rclpy" in block]
    called = [node.func for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]
    called = [f for f in called if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Attribute)]
    for owner, kind in (("episode", Episode), ("gw", Gapwatch)):
        names = {f.attr for f in called if f.value.attr == owner}
        assert names
        assert all(hasattr(kind, name) for name in names)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_line_sends_an_episode(project, environment, tmp_path):
    told = run(["bash", "-ec", "\n".join(blocks(README, "bash"))], environment, tmp_path)
    assert '"status":"accepted"' in told


@pytest.mark.skipif(
    shutil.which("g++") is None or find_library("curl") is None, reason="g++ or libcurl is not installed"
)
def test_the_cpp_program_compiles_and_sends_an_episode(project, environment, tmp_path):
    [source] = blocks(README, "cpp")
    (tmp_path / "send_episode.cpp").write_text(source)
    (tmp_path / "include" / "curl").mkdir(parents=True)
    (tmp_path / "include" / "curl" / "curl.h").write_text(CURL_H)
    argv = ["g++", "-std=c++17", "-Wall", "-Werror", "-Iinclude", "send_episode.cpp", "-o", "send_episode"]
    run([*argv, f"-l:{find_library('curl')}"], environment, tmp_path)
    assert run(["./send_episode"], environment, tmp_path).endswith("\n201\n")
    assert run(["./send_episode"], environment, tmp_path).endswith("\n200\n"), (
        "the same id again is no new episode"
    )
    assert project.stored() == 1


def test_the_shell_commands_of_the_readme_exist(project, environment, tmp_path):
    commands = re.findall(r"^gapwatch-client (\w+)", "\n".join(blocks(README, "sh")), re.MULTILINE)
    assert set(commands) == {"push", "status", "retry", "parked", "working", "import"}
    program = Path(sys.executable).with_name("gapwatch-client")
    for command in sorted(set(commands)):
        assert "--spool" in run([program, command, "--help"], environment, tmp_path)


def test_every_mapping_example_is_one_the_importer_reads(tmp_path):
    from gapwatch_client.importers.mapping import read_rules

    [example] = blocks(REFERENCE, "toml")
    (tmp_path / "mapping.toml").write_text(example)
    rules = read_rules(tmp_path / "mapping.toml")
    assert rules.columns["conditions.lighting"] == "light"
    assert rules.values["outcome"] == {"IO": "success", "NIO": "failure"}
    assert rules.scale == {"duration_s": 0.001}


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", README):
        assert (ROOT / "client" / target).exists(), target
