"""Scripted encounters with labelled events, and the bags generated from them."""
