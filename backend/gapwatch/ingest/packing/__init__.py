"""Checked records into rows: what episodes share is packed once, numbers as arrays, and everything is hashed."""
