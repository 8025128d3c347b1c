"""Analyse a study: tables, rates by condition, a report, and a script for statistics."""
