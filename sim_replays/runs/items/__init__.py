"""A suite's items as they go into a bag."""
