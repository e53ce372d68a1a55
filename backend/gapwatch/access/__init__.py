"""Users, browser sessions, API keys, roles."""
