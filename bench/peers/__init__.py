"""What the same record costs in other systems."""
