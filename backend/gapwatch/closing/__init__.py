"""Closing the gap: what was done and whether it worked, what to do next, and what to know on Monday."""
