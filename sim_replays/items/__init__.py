"""Convert a suite's items for a bag."""
