"""Findings to flags: one event a happening, and its explanation."""
