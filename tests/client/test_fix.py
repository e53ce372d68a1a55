import pytest
from gapwatch_client import FixRefused, Gapwatch


def test_a_fix_is_told_and_listed_and_a_bad_one_is_refused_by_field(project, tmp_path):
    with Gapwatch(project.url, project.keys["ingest"], spool=tmp_path / "spool") as gw:
        number = gw.fix(
            "200 real grasps",
            deployment="berlin-line-3",
            kind="fine_tuning",
            category="contact_dynamics",
            from_version="1.4.1",
            robot_hours=12,
            demonstrations=200,
            expected_points=15,
        )
        with pytest.raises(FixRefused, match="/body/fix/category"):
            gw.fix("x", kind="fine_tuning", category="magic")
    with project.client("read") as reader:
        [fix] = reader.get("/fixes").json()["fixes"]
    assert (fix["id"], fix["deployment"], fix["expected_points"], fix["written"]) == (
        number, "berlin-line-3", 15, "before",
    )  # fmt: skip
