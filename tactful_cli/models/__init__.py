"""`tactful models`."""
