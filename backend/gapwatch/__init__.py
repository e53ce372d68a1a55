"""Gapwatch: what a robot policy loses from simulation to reality, why, and who must know."""

from importlib.metadata import version

__version__ = version("gapwatch")
