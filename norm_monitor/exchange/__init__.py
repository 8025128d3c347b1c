"""Classify a robot's turn in its exchange: features, classifier, shipped weights."""
