"""Sound to utterances: voice activity, segments, recognition."""
