"""Users, sessions, keys, members, and what a project has set for itself."""
