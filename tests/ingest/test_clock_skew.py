import pytest

from gapwatch.errors import Invalid
from gapwatch.ingest.clock_skew import read_clock


@pytest.mark.parametrize(
    "sent_at", ["4894-01-08T21:54:22Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "no time"]
)
def test_a_clock_that_no_time_can_be_corrected_by_is_refused(sent_at):
    with pytest.raises(Invalid, match="Gapwatch-Sent-At"):
        read_clock(sent_at)
