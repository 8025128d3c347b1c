"""Veto candidates that cannot or should not be done."""
