"""Figures as plain Plotly dicts: {"data", "layout", "narrow"}, colours as CSS tokens, drawn by charts.js.

Plain dicts cost a tenth of a millisecond where `go.Figure` costs several; tests check them against its schema.
"""
