"""From checked episodes to rows: registration, COPY, quarantine, corrections and labels."""
