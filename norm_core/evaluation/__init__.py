"""Measures that are pure functions: F1, figures with intervals, agreement coefficients."""
