"""Cut records into windows, by stamps alone."""
