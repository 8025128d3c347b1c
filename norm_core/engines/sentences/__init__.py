"""Sentence encoders: texts to embeddings."""
