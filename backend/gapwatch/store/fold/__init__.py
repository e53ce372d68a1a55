"""From accepted episodes to rollups: the queue of work, the rows to fold, and the counts they add up to."""
