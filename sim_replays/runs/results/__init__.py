"""A run's folder, and what is computed from its raw answers."""
