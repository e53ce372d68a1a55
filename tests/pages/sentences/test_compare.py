from pages.answers_made import LARGE

from gapwatch.answers.real_difference import RealDifference
from gapwatch.pages.compared_subject import ComparedSubject
from gapwatch.pages.sentences.compare import headline


def subject(name: str, against: RealDifference | None = None) -> ComparedSubject:
    return ComparedSubject(name, "policy", "", LARGE, against, None)


def test_one_subject_asks_for_another():
    assert str(headline([subject("v1")])) == "Add another to compare it with v1."


def test_all_others_are_held_against_the_first():
    said = headline(
        [
            subject("v1"),
            subject("v2", RealDifference(-0.08, (-0.12, -0.04), 40.0, "worse")),
            subject("v3", RealDifference(0.01, (-0.02, 0.04), 1.2, "not settled")),
            subject("v4", RealDifference(None, None, 1.0, "too few episodes")),
        ]
    )
    assert str(said) == (
        "v2 does worse than v1 in reality, by 8.0 points (\u221212.0 to \u22124.0). "
        "Between v3 and v1 it is not settled yet (\u22122.0 to +4.0 points). "
        "Between v4 and v1 it is not settled yet."
    )
    assert said.emphasised("strong") == ["v2", "worse", "v3", "v4"]
