"""Rollouts in motion, for people, the API and the watch: plans, gates, decisions and their evidence."""
