"""Whether and since when something changed: detectors that may be checked after every episode, and onsets."""
