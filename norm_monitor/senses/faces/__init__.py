"""Faces in frames, and who comes, leaves and looks away."""
