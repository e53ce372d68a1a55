"""Labels by hand: each save is told in words and can be taken back, one episode or several at a time."""

import re

import pytest
from people import Browser, somebody

from gapwatch.pages.labelling import CATEGORY_KEYS, MOST_AT_ONCE
from gapwatch.taxonomy import CATEGORIES
from parts import episode, wait_until


@pytest.fixture
def engineer(service, project):
    with Browser(service, somebody(project, "engineer")) as browser:
        yield browser


@pytest.fixture
def failed(project):
    """Six failures f-0 … f-5 and a success, folded."""
    records = [
        episode(
            id=f"f-{n}", outcome="failure", started_at=f"2026-10-01T00:0{n}:00Z", failure={"note": f"seen {n}"}
        )
        for n in range(6)
    ]
    with project.client() as client:
        client.post("/episodes/batch", json=[*records, episode(id="fine")]).raise_for_status()
    wait_until(lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, what="the counts")


def notice(page: str) -> str:
    found = re.search(r'id="saved">(.*?)</div>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split()) if found else ""


def categories(project) -> dict[str, str | None]:
    return dict(project.rows("SELECT id, failure_category FROM episodes WHERE project_id = :p ORDER BY id"))


def undo_number(page: str) -> str:
    return re.search(r'name="undo" value="(\d+)"', page)[1]


def test_every_category_has_a_key_of_its_own_that_is_no_other_key_of_the_page():
    assert list(CATEGORY_KEYS) == [*CATEGORIES, ""]
    assert len(set(CATEGORY_KEYS.values())) == len(CATEGORY_KEYS)
    assert not set(CATEGORY_KEYS.values()) & set("ajklmnsux")


def test_a_save_is_confirmed_with_the_progress_and_taken_back(engineer, project, failed):
    page = engineer.submit("/episodes/f-5", project.slug, category="contact_dynamics", note="seen 5", then="next")
    assert page.url.path == "/episodes/f-4"
    assert notice(page.text).startswith("Labelled contact dynamics, 1 of 6.")
    page = engineer.submit("/episodes/f-4", project.slug, undo=undo_number(page.text))
    assert notice(page.text).startswith("Taken back, as it was before, 0 of 6.")
    assert "data-undo" not in page.text
    assert set(categories(project).values()) == {None}
    assert project.value("SELECT failure_note FROM episodes WHERE project_id = :p AND id = 'f-5'") == "seen 5"


def test_what_else_a_save_can_be_is_told_too(engineer, project, failed):
    for fields, words in (
        ({"category": "visual", "note": "seen 0"}, "Labelled visual, 1 of 6."),
        ({"category": "visual", "note": "seen 0"}, "Nothing was changed. Not changed: 1 had it already."),
        ({"category": "visual", "note": "glare"}, "Note saved."),
        ({"category": "", "note": "glare"}, "Label taken off, 0 of 6."),
    ):
        assert notice(engineer.submit("/episodes/f-0", project.slug, **fields).text).startswith(words)


def test_several_are_labelled_together_and_the_answer_says_which_were_not_and_why(engineer, project, failed):
    engineer.submit("/episodes/f-0", project.slug, category="visual", note="seen 0")
    page = engineer.submit(
        "/episodes?outcome=failure",
        project.slug,
        episode=["f-0", "f-1", "f-2", "fine", "gone"],
        category="visual",
    )
    assert page.url.params["outcome"] == "failure"
    said = notice(page.text)
    assert said.startswith("Labelled 2 episodes visual, 3 of 6."), said
    assert "Not changed: 1 did not fail, 1 had it already, 1 not stored any more." in said
    assert (
        "Changed: f-1 , f-2 Not changed: f-0 had it already, fine did not fail, gone not stored any more" in said
    )
    assert project.value("SELECT failure_note FROM episodes WHERE project_id = :p AND id = 'f-1'") == "seen 1"
    # Somebody else changes one before it is taken back: that one stays.
    number = undo_number(page.text)
    engineer.submit("/episodes/f-2", project.slug, category="actuation", note="seen 2")
    said = notice(engineer.submit("/episodes", project.slug, undo=number).text)
    assert said.startswith("Taken back: 1 episode as before, 2 of 6. Not changed: 1 changed by somebody since.")
    assert categories(project) | {"fine": None} == {
        "f-0": "visual", "f-1": None, "f-2": "actuation", "f-3": None, "f-4": None, "f-5": None, "fine": None,
    }  # fmt: skip


def test_the_ledger_follows_labels_given_together(engineer, project, failed):
    engineer.submit("/episodes", project.slug, episode=["f-1", "f-2"], category="visual")
    wait_until(
        lambda: (
            project.value(
                "SELECT sum(r.failures) FROM rollup_failures r JOIN signatures s ON s.id = r.signature_id"
                " AND s.project_id = r.project_id WHERE r.project_id = :p AND tier = 'day' AND category = 'visual'"
            )
            == 2
        ),
        what="the fold",
    )


def test_nothing_ticked_too_many_or_another_category_is_refused(engineer, project, failed):
    assert "Tick the episodes" in engineer.submit("/episodes", project.slug, category="visual").text
    many = [f"f-{n}" for n in range(MOST_AT_ONCE + 1)]
    answer = engineer.submit("/episodes", project.slug, episode=many, category="visual")
    assert answer.status_code == 422 and f"at most {MOST_AT_ONCE}" in answer.text
    assert engineer.submit("/episodes", project.slug, episode=["f-1"], category="magic").status_code == 404
    assert set(categories(project).values()) == {None}


def test_only_ones_own_save_is_shown_and_taken_back(service, engineer, project, failed):
    page = engineer.submit("/episodes/f-5", project.slug, category="visual", note="")
    number = undo_number(page.text)
    with Browser(service, somebody(project, "admin")) as other:
        assert notice(other.get(f"/episodes/f-5?saved={number}").text) == ""
        assert other.submit("/episodes/f-5", project.slug, undo=number).status_code == 404
    assert notice(engineer.get("/episodes/f-5?saved=99999999999").text) == ""
    assert categories(project)["f-5"] == "visual"


def test_the_list_tells_the_progress_and_finds_what_waits_for_a_label(engineer, project, failed):
    engineer.submit("/episodes", project.slug, episode=["f-1", "f-2"], category="visual")
    page = engineer.get("/episodes?deployment=berlin-line-3")
    assert "<b>2</b> of 6</span> failures labelled" in page.text
    assert "labelled=no" in page.text
    assert engineer.get("/episodes?labelled=no").text.count(" data-row>") == 4
    assert engineer.get("/episodes?labelled=yes").text.count(" data-row>") == 2
    assert engineer.get("/episodes?format=json").json()["page"]["progress"] == [
        {"deployment": "berlin-line-3", "labelled": 2, "failures": 6}
    ]


def test_who_may_only_look_gets_nothing_to_tick(service, project, failed):
    with Browser(service, somebody(project, "viewer")) as viewer:
        page = viewer.get("/episodes").text
    assert 'name="episode"' not in page and "data-several" not in page
