"""Frozen dataclasses that travel between the parts, and their message and JSON forms."""
