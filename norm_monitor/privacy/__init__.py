"""Redaction, erasure, anonymization, key files and the inventory."""
