"""Camera messages to kept frames."""
