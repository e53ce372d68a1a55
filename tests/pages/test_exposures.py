import pytest
from pages.answers_made import a_ledger

from gapwatch.answers.ledger import DropPart
from gapwatch.pages.exposures import exposures


def test_bars_stand_on_one_scale_around_zero():
    off, mix, rate = exposures(a_ledger(), "Only real has seen wet.")
    # From −5 to 30 points: 35 points over the whole width.
    assert off.zero == mix.zero == rate.zero == pytest.approx(100 / 7)
    assert (off.left, off.width) == (pytest.approx(100 / 7), pytest.approx(200 / 7))
    assert (mix.left, mix.width) == (pytest.approx(0), pytest.approx(100 / 7))
    assert mix.whisker is None and rate.whisker == (pytest.approx(300 / 7), pytest.approx(100))
    assert off.about == "Only real has seen wet."


def test_unknown_parts_are_left_out_and_nothing_is_no_bar():
    [rate] = exposures(a_ledger(off_support=None, mix=None, rate=DropPart(0.0, 0.0, None)), "")
    assert (rate.name, rate.zero, rate.width) == ("Rate", 0.0, 0.0)
