from gapwatch.statistics.estimates.worst_first import is_few, is_shared, surest_first


def test_the_larger_lower_end_is_first_and_what_has_none_or_may_not_lead_is_last():
    keys = {
        "sure": surest_first(0.2),
        "less sure": surest_first(-0.1),
        "no interval": surest_first(None),
        "few": surest_first(0.5, leads=False),
    }
    assert sorted(keys, key=keys.__getitem__) == ["sure", "less sure", "no interval", "few"]


def test_twenty_episodes_are_not_few_and_a_side_that_never_tried_says_nothing():
    assert not is_few(20, 20) and not is_few(0, 20) and not is_few(20)
    assert is_few(1000, 19) and is_few(19, 1000) and is_few(0, 0)


def test_what_nearly_all_episodes_share():
    assert is_shared(950, 1000, 950, 1000)
    assert not is_shared(949, 1000, 950, 1000)
    assert not is_shared(950, 1000, 949, 1000)
    # With fewer than twenty others there is nothing to hold it against, whatever the share.
    assert is_shared(50, 100, 30, 49) and not is_shared(50, 100, 30, 50)
    assert is_shared(0, 0, 960, 1000)
