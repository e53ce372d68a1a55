"""Channels: where alerts go. `kinds/` has one module a kind; everything that depends on the kind stands there."""
