"""`tactful demo`."""
