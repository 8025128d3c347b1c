"""Parsers of foreign bytes, given bytes that nobody wrote."""
