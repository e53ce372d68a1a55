import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from gapwatch.statistics.estimates.multiplicity import (
    benjamini_hochberg,
    e_benjamini_hochberg,
)

steady = settings(deadline=None, derandomize=True, database=None)
PUBLISHED = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
PUBLISHED += [0.324, 0.4262, 0.5719, 0.6528, 0.759, 1.0]
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_benjamini_and_hochbergs_own_example_keeps_four():
    """Benjamini and Hochberg 1995, section 4: 15 p-values, 4 stand at 5 %, Bonferroni keeps 3."""
    adjusted = benjamini_hochberg(PUBLISHED)
    assert [q <= 0.05 for q in adjusted] == [True] * 4 + [False] * 11
    assert sum(p * len(PUBLISHED) <= 0.05 for p in PUBLISHED) == 3


@steady
@given(probabilities)
def test_adjusted_p_values_agree_with_statsmodels(p_values):
    assert benjamini_hochberg(p_values) == pytest.approx(multipletests(p_values, method="fdr_bh")[1], abs=1e-12)


@steady
@given(probabilities, st.randoms())
def test_order_does_not_matter(p_values, chance):
    order = list(range(len(p_values)))
    chance.shuffle(order)
    shuffled = benjamini_hochberg([p_values[i] for i in order])
    plain = benjamini_hochberg(p_values)
    assert list(shuffled) == pytest.approx([plain[i] for i in order], abs=0)


@pytest.mark.parametrize(
    ("e_values", "kept"),
    [
        ([200, 90, 60, 3, 1], (0, 1, 2)),
        ([1, 60, 3, 90, 200], (4, 3, 1)),
        ([19.9], ()),
        ([20], (0,)),
        ([40, 39], (0, 1)),
        ([39, 3], ()),
        ([], ()),
    ],
)
def test_e_values_that_stand(e_values, kept):
    """The first row is the check of Wang and Ramdas by definition; 20 = 1 / 0.05."""
    assert e_benjamini_hochberg(e_values) == kept


def test_nothing_in_nothing_out():
    assert benjamini_hochberg([]) == ()
