"""Find precedents by likeness of meaning."""
