"""Measures that are pure functions: event matching, F1, intervals, calibration, agreement coefficients."""
