"""Coders' labels: forms, matching, agreement."""
