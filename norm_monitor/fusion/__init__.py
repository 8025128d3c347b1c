"""Merge findings into flags: one flag per event, with an explanation."""
