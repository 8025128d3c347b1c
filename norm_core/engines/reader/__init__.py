"""Make the reader of talk from a base model and an adapter."""
