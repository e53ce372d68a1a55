"""Pure: what is watched, when it is an alert, who is told and what they read. No database, no clock."""
