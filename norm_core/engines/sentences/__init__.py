"""Sentence encoders: texts to vectors of meaning."""
