"""The page of one deployment, its figures, tables and report."""
