"""The stage that watches folded episodes, moves alerts and notifies people."""
