"""Pure: numbers in, numbers out. No database, no clock."""
