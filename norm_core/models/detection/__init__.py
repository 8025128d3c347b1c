"""Read from a model's own files what its manifest states."""
