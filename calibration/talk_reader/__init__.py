"""Teach the talk reader: material, model and recipe."""
