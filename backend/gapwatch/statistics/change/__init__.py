"""Whether and since when something changes: detectors that may look after every episode, and onsets."""
