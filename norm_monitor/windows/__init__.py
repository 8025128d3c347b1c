"""Records in, windows out, by stamps alone."""
