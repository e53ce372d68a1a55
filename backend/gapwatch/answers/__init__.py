"""Answers: what statistics makes of what is stored, one module a question, for API, pages and alerts alike."""
