"""Measure the monitor on encounters and labelled recordings."""
