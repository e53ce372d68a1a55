"""Alerts and incidents in motion, for the watch and for people alike: decisions of `watching`, rows of the store.

Everything here is a step of the caller's transaction.
"""
