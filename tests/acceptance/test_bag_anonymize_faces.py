"""Blur faces of every size in a shared bag, and whole pictures in which no face is found."""
