"""Decide of each turn, silence and sighting whether it is an error or a competence, and word the flag."""
