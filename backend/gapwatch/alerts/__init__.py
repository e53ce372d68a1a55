"""The stage that watches folded episodes, moves alerts, and carries what people must know out of the house."""
