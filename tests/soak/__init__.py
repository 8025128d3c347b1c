"""Soak: scripted faults against the nodes of `up`, and hours of talk."""
