"""What the same record costs elsewhere."""
