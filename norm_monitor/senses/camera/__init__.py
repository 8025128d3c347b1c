"""Camera messages to frames."""
