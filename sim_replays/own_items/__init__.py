"""Make items for a suite from one's own recordings, and check whether a set of items is a good benchmark."""
