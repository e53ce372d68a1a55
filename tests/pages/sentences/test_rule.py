from gapwatch.pages.sentences.rule import limits, matched


def test_the_limits_that_people_ask_about():
    assert limits({"series": "success", "above": 0.05, "arl": 10_000.2, "window": 3}) == (
        "success, more than 5.0 points, at most one false alarm in 10\u202f000 episodes"
    )
    assert limits({"what": "violations", "after_minutes": 90}) == "violations, quiet for 90 min"
    assert limits({}) == ""


def test_what_a_rule_or_a_silence_is_for():
    assert matched({"deployment": ["a", "b"], "site": [], "stage": ["full"]}) == "deployment a or b, stage full"
    assert matched({}) == ""
