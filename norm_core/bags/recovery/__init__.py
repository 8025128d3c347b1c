"""Recover messages from damaged bag files."""
