"""Runs tests as if it were 400 days later: `python tests/later.py tests/alerts -x`, the rest as pytest takes it.

A clock that is ahead (later.c) is compiled and preloaded into this run and all it starts, Postgres included. Debian's
faketime would do it with more: it also moves monotonic clocks and the times of files, unless told not to by variables
that the embedded servers, which inherit little, would have to be given too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DAYS = 400
SOURCE = Path(__file__).with_name("later.c")


def main(arguments: list[str]) -> int:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform != "linux" or compiler is None:
        missing = "a C compiler is not installed" if sys.platform == "linux" else "this is not Linux"
        print(f"Left out: {missing} (the run {DAYS} days later).")
        return 0
    # Not below the clone or TMPDIR: the account that Postgres runs as must reach it, and LD_PRELOAD ends at a space.
    directory = Path(tempfile.mkdtemp(prefix="gapwatch-later-", dir="/tmp"))
    directory.chmod(0o755)
    clock = directory / "clock.so"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    try:
        argv = [compiler, "-shared", "-fPIC", "-O2", *warnings, f"-DDAYS={DAYS}", SOURCE, "-o", clock]
        subprocess.run([*argv, "-ldl", "-pthread"], check=True)
        ahead = {"LD_PRELOAD": str(clock), "GAPWATCH_TESTS_DAYS_LATER": str(DAYS)}
        print(f"{DAYS} days later:", flush=True)
        pytest = [sys.executable, "-m", "pytest", *arguments]
        return subprocess.run(pytest, env=os.environ | ahead, check=False).returncode
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
