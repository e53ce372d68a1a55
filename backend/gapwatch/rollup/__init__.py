"""Stored episodes into mergeable numbers."""
