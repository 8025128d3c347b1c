"""Units: the turns, silences and sightings that a coder marks."""
