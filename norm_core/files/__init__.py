"""Atomic writes, plain reads, and where data files lie."""
