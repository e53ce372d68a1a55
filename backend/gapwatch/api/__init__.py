"""JSON read and admin routes under /api/v1, and the service's own health."""
