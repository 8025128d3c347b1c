"""Retrieve precedents by similarity of meaning."""
