"""`/settings`: what a project decides for itself, one module a page."""
