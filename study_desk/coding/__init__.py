"""Coders' labels: file formats, matching and agreement."""
