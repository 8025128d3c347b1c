"""Scripted encounters with the events a trained coder would mark, and the bags generated from them."""
