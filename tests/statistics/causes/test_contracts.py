import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapwatch.statistics.causes.contracts import compare_contracts

steady = settings(deadline=None, derandomize=True, database=None)
SIM = {
    "action_scale": 0.5,
    "control_hz": 50,
    "joint_order": ["j1", "j2", "j3"],
    "camera": {"exposure_us": 8000, "crop": [0, 0, 224, 224]},
    "note": "lab",
}


def rows(sim, real):
    return [(d.field, d.kind, d.sim, d.real, d.relative) for d in compare_contracts(sim, real).differences]


def test_equal_contracts_are_comparable_however_their_numbers_are_written():
    real = SIM | {"control_hz": 50.0, "action_scale": 0.5000000149}
    assert compare_contracts(SIM, real).verdict == "comparable"


def test_differences_come_gravest_first():
    real = {
        "action_scale": 0.25,
        "control_hz": 45,
        "joint_order": ["j2", "j1", "j3"],
        "camera": {"exposure_us": 12000, "crop": [0, 0, 256, 224]},
        "gripper": "soft",
    }
    assert rows(SIM, real) == [
        ("joint_order", "order", ["j1", "j2", "j3"], ["j2", "j1", "j3"], None),
        ("action_scale", "value", 0.5, 0.25, 0.5),
        ("control_hz", "value", 50, 45, pytest.approx(0.1)),
        ("camera.exposure_us", "value", 8000, 12000, pytest.approx(1 / 3)),
        ("camera.crop[2]", "value", 224, 256, 0.125),
        ("gripper", "only in real", None, "soft", None),
        ("note", "only in sim", "lab", None, None),
    ]


@pytest.mark.parametrize(
    ("sim", "real", "kind"),
    [
        (True, 1, "type"),
        (1, "1", "type"),
        (None, 0, "type"),
        ([1, 2], [1, 2, 3], "length"),
        ([1, 2], [2, 1], "order"),
        (["a", "b"], ["a", "c"], "value"),
        ({"a": {}}, {"a": []}, "type"),
        (1e308, -1e308, "value"),
        (10**400, 1.5, "value"),
        (0, 0.0, None),
        ([1], [1.0], None),
    ],
)
def test_kinds_of_difference(sim, real, kind):
    found = compare_contracts({"x": sim}, {"x": real}).differences
    assert [d.kind for d in found] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("sim", "real", "reason"),
    [
        (None, {}, "No contract in sim."),
        ({}, None, "No contract in real."),
        (None, None, "No contract in sim and real."),
    ],
)
def test_a_missing_contract_is_said(sim, real, reason):
    found = compare_contracts(sim, real)
    assert (found.verdict, found.reason) == ("unknown", reason)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
contracts = st.dictionaries(st.sampled_from(["joint_order", "scale", "c", "d"]), values)


@steady
@given(contracts, contracts)
def test_both_directions_find_the_same_fields(sim, real):
    forth, back = compare_contracts(sim, real), compare_contracts(real, sim)
    assert forth.verdict == back.verdict
    assert {(d.path, d.relative) for d in forth.differences} == {(d.path, d.relative) for d in back.differences}
    assert compare_contracts(sim, sim).verdict == "comparable"
