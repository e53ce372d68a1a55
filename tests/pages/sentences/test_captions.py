from types import SimpleNamespace

from pages.answers_made import CONTACT, LARGE, a_drop, a_ledger, a_part, a_side, a_slice

from gapwatch.answers.answer import Caution, FieldDifference
from gapwatch.answers.drop import DropValue, UnfinishedValue
from gapwatch.pages.sentences import captions

BARE = a_part("Visual", 0.0, weight=0.0)


def test_the_waterfall_is_told_to_those_who_do_not_see_it():
    assert captions.waterfall(a_side(95, 100), a_side(7, 10)) == (
        "Waterfall from simulation success 95.0 per cent to real success 70.0 per cent by gap category; "
        "the table below has every number"
    )


def test_the_ledger_says_what_leads_and_what_has_no_evidence():
    left = a_ledger(unattributed=a_part("Unattributed", 0.04))
    assert captions.ledger_finding(left, CONTACT) == (
        "Contact dynamics makes 60 % of it. 4.0 points have no evidence and stay unattributed."
    )
    assert captions.ledger_finding(a_ledger(), None) == ""


def test_categories_without_evidence_are_named_below_the_bars():
    assert captions.ledger_caption([CONTACT, BARE]).endswith("exactly. No evidence, so zero: visual.")
    assert captions.ledger_caption([CONTACT]).endswith("exactly.")


def test_off_support_gives_at_most_two_examples():
    unseen = [a_slice("surface", level, 0.5, "real only") for level in ("wet", "oily", "icy")]
    assert captions.off_support([a_slice("lighting", "dim", 0.5)]).endswith("only one side has seen.")
    assert captions.off_support(unseen[:1]).endswith(", such as surface = wet.")
    assert captions.off_support(unseen).endswith(", such as surface = wet and surface = oily.")


def test_the_report_sums_the_exposures_up():
    assert captions.exposure_summary(a_ledger()) == (
        "The same drop by exposure: off-support 10.0 [5.0, 15.0], mix \u22125.0, rate 20.0 [10.0, 30.0] points."
    )


def test_what_is_not_counted_and_what_it_could_change():
    failed = UnfinishedValue(400, 1210, 0.9, 0.6, DropValue(0.3, (0.2, 0.4), None), "large", "by hand")
    drop = a_drop(0.25, "large", (0.21, 0.28), if_unfinished_failed=failed)
    assert str(captions.not_counted(a_side(7, 10, aborted=4, abandoned=6), drop, "step_change")) == (
        "Not counted: 4 aborted and 6 abandoned real episodes. Had all of them, and those of sim, failed, "
        "the drop would be 30.0 points [20.0, 40.0]. Onset: step change."
    )
    assert str(captions.not_counted(a_side(7, 10), drop, "none")) == "Onset: none."


def test_the_worst_conditions_say_what_was_never_simulated():
    slices = [
        a_slice("surface", "wet", 0.41, "real only", 0.4),
        a_slice("lighting", "dim", 0.554, sure_loss=0.3),
        a_slice("surface", "dry", 0.9, sure_loss=0.2),
        a_slice("clutter", "0", 0.8, sure_loss=0.1),
        a_slice("object", "mug", 0.9, sure_loss=0.05),
    ]
    said = captions.worst_conditions(slices)
    assert str(said) == "Worst: surface = wet 41 %, never simulated; lighting = dim 55 %; clutter = 0 80 %."
    assert said.emphasised("code") == ["surface = wet", "lighting = dim", "clutter = 0"]


def test_no_level_of_few_episodes_or_that_nearly_all_share_is_the_worst():
    slices = [
        a_slice("lighting", "dim", 0.9, sure_loss=-0.01),
        a_slice("gripper", "suction", 0.7, sure_loss=0.2, shared=True),
        a_slice("lighting", "dark", 0.0, sure_loss=0.4, few=True),
    ]
    assert str(captions.worst_conditions(slices)) == (
        "At no level that can be compared is anything lost for certain."
    )
    assert captions.few_levels(1, 20) == "1 level with fewer than 20 episodes"
    assert captions.few_levels(7, 20) == "7 levels with fewer than 20 episodes"


def test_small_notes():
    assert captions.conditions_caption(()) == (
        "The surest loss first: by the lower end of the drop. Lines: 95 % interval."
    )
    assert captions.conditions_caption(("pose", "seed")).endswith("too many values: pose, seed.")
    assert captions.failures_finding(0.0) == "The simulator fails in all of these ways too."
    assert captions.failures_finding(12.4) == "12 of them happen where the simulator never fails."
    assert captions.signals_note(400, 1200, sampled=True).endswith(
        "n 400 sim, 1\u202f200 real, the newest that match the filter."
    )
    assert captions.line_key("day") == "real, 7 days to each day" and captions.line_key("hour") == "real"


def test_one_field_differs_and_two_differ():
    field = FieldDifference("control_hz", "number", 100, 50)
    assert captions.fields_differ(Caution("contract-differs", "", (field,))) == "1 field differs"
    assert captions.fields_differ(Caution("contract-differs", "", (field, field))) == "2 fields differ"


def test_how_often_real_is_higher():
    assert str(captions.real_higher(SimpleNamespace(real_higher=0.814, interval=(0.5, 0.74)))) == (
        "real higher in 81 % [75, 87]"
    )
    assert str(captions.real_higher(SimpleNamespace(real_higher=None, interval=None))) == "real higher in – %"


def test_a_drop_without_unfinished_attempts_says_nothing_of_them():
    assert "Had all" not in str(captions.not_counted(a_side(7, 10, aborted=1), LARGE, "none"))
