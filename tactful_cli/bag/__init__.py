"""`tactful bag`."""
