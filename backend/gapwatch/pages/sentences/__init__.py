"""What pages say in sentences: pure functions from answers to words, one subject a module."""
