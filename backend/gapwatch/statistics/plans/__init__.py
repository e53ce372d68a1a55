"""Which trials to make next, and what they will tell."""
