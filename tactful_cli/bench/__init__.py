"""`tactful bench`."""
