"""How far deployments are trusted: rollouts, their evidence, and decisions."""
