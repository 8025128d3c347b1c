"""The items of a suite, and the bags that are made of them."""
