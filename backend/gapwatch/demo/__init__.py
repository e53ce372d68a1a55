"""The demo: a fleet with known stories, sent through the real client, and a printed sign-in."""

from gapwatch.demo.loading import load_demo
from gapwatch.demo.pager import allow_local_pager

__all__ = ["allow_local_pager", "load_demo"]
