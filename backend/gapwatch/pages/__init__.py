"""HTML routes: one view dataclass a page, rendered on the server."""
