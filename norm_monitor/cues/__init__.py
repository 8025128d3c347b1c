"""Measured facts about an encounter that a person would call a social error or competence; a family a file."""
