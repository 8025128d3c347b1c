"""Redaction, erasure, anonymous bags, key files and the inventory."""
