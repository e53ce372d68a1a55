"""Whether a policy may go on to its next stage: evidence that may be looked at after every episode."""
