"""Whether a fix closed the gap: change against controls, regression to the mean, what a team has learned."""
