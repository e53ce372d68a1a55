import pytest

from gapwatch.pages.words import number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0191, "0.0191"),
        (34.61, "34.6"),
        (-412.4, "\u2212412"),
        (12_345.6, "12\u202f346"),
        (415_364_133_320_682_045_440.0, "4.2 × 10²⁰"),
        (-2e10, "\u22122.0 × 10¹⁰"),
        (float("nan"), "–"),
    ],
)
def test_a_measured_number_has_as_many_digits_as_tell_something(value, text):
    assert number(value) == text
