"""How long a test waits for what must happen: a guard against hangs, never a measure of speed."""

PATIENCE_S = 600.0
