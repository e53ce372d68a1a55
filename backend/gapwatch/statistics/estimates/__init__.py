"""How large something is and how sure that is: rates, drops, intervals, verdicts, sketches."""
