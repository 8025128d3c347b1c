"""A run's folder, and the figures computed from its raw answers."""
