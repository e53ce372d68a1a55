"""Gapwatch's client: from a control loop to the dashboard in five lines, whatever the network does."""

from gapwatch_client.client import Gapwatch
from gapwatch_client.contract import Contract
from gapwatch_client.episode import Episode
from gapwatch_client.fix import FixRefused
from gapwatch_client.permit import Permit
from gapwatch_client.version import VERSION as __version__

__all__ = ["Contract", "Episode", "FixRefused", "Gapwatch", "Permit", "__version__"]
