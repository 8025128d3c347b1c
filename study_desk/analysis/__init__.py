"""Analyse a study: tables, rates by condition, a report, scripts for statistics, and sample sizes."""
