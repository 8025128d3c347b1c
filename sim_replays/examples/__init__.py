"""Generated sessions and data to try the product with."""
