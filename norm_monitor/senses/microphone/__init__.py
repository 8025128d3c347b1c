"""Audio messages and files to a gapless audio stream."""
