"""Signing in, invitations, first steps and the own account."""
