"""`tactful view`, one file a source of what the page shows."""
