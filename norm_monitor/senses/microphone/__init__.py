"""Audio messages and files to a gapless stream of sound."""
