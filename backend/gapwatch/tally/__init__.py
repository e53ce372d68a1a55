"""Episodes into sums that add up: pure, shared by folding, verifying and reading the edge of a window."""
