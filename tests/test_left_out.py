"""On a machine that lacks something, the suite runs the rest and says in one line what it left out."""

import os
import re
import subprocess
import sys

from gapwatch.settings import ROOT


def test_a_run_without_chromium_names_the_browser_tests_in_one_line(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/browser"],
        cwd=ROOT,
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    [line] = re.findall(r"^Left out: .*$", run.stdout, re.MULTILINE)
    files = re.fullmatch(r"Left out: chromium is not installed \((.*)\)\.", line)
    assert files is not None, line
    named = [re.fullmatch(r"\d+ of (tests/browser/test_\w+\.py)", one) for one in files[1].split(", ")]
    assert all(named) and {one[1] for one in named} == {
        str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "browser").glob("test_*.py")
    }


def test_a_run_without_alertmanager_plays_it_and_names_what_needs_the_real_one(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/alerts/test_alertmanager.py", "-k", "restarted or acknowledged"],
        cwd=ROOT,
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    [line] = re.findall(r"^Left out: .*$", run.stdout, re.MULTILINE)
    assert line == ("Left out: prometheus-alertmanager is not installed (2 of tests/alerts/test_alertmanager.py).")


def test_without_a_compiler_one_line_says_that_the_run_of_another_day_was_left_out(tmp_path):
    run = subprocess.run(
        [sys.executable, ROOT / "tests" / "later.py", "tests"],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "Left out: a C compiler is not installed (the run 400 days later).\n"
