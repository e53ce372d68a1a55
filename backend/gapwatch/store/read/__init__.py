"""What answers, pages and the API read: rollups of a side, single episodes, names and their surroundings."""
