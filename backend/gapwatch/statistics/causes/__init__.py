"""What a drop comes from: categories, conditions, signals and contracts."""
