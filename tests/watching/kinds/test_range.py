from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from gapwatch.watching.kinds import RULE_KINDS, read_params
from gapwatch.watching.phrases import AlertReason
from gapwatch.watching.reason_kinds import reason_kind

AT = datetime(2026, 11, 2, tzinfo=UTC)


def reason(**evidence):
    return AlertReason("range-left", "range", "warning", "range:friction", evidence, AT)


def test_it_says_that_the_simulator_must_be_identified_again():
    words = RULE_KINDS["range"].phrase(reason(value=0.951, low=0.4, high=0.8, place="kuka-1", unit=None))
    assert words == (
        "friction is 0.951 at kuka-1, outside the randomised 0.4 to 0.8: the simulator must be identified again"
    )
    assert "must be identified again" in RULE_KINDS["range"].phrase(reason())


def test_it_is_news_of_signals_and_waits_for_no_episode():
    assert reason_kind("range", "range:friction") == "signals"
    with pytest.raises(ValidationError):
        read_params("range", {"for_episodes": 3})
