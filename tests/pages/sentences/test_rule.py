from gapwatch.pages.sentences.rule import matched


def test_what_a_rule_or_a_silence_is_for():
    assert matched({"deployment": ["a", "b"], "site": [], "stage": ["full"]}) == "deployment a or b, stage full"
    assert matched({}) == ""
