"""Plans of trials: which to make next, what they should tell, and what they told."""
