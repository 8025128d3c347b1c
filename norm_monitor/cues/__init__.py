"""Cues: measured facts that a person would call a social error or competence; one family per file."""
