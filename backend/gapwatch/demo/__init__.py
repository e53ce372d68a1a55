"""The demo: a fleet whose stories are known, sent through the real client, and a sign-in printed."""

from gapwatch.demo.loading import load_demo
from gapwatch.demo.pager import allow_local_pager

__all__ = ["allow_local_pager", "load_demo"]
