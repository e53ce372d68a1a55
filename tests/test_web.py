import subprocess
import sys

STEPS = """
import sys
from gapwatch.app import make_app
from gapwatch.web import import_ahead
assert "scipy.stats" not in sys.modules
import_ahead()
assert "scipy.stats" in sys.modules and "scipy.special" in sys.modules
"""


def test_what_takes_a_second_to_import_is_not_part_of_the_start_and_is_there_before_the_first_incident():
    subprocess.run([sys.executable, "-c", STEPS], check=True)
