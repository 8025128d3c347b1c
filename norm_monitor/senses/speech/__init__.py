"""Sound to utterances: voice activity, segmentation, recognition."""
