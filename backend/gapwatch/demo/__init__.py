"""The demo: a fleet whose stories are known, sent through the real client, and a sign-in printed."""

from gapwatch.demo.loading import load_demo

__all__ = ["load_demo"]
