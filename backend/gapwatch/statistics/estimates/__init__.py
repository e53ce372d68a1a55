"""How large something is and how certain: rates, drops, intervals, verdicts, sketches."""
