"""Make the talk reader from a base model and an adapter."""
