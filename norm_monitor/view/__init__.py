"""The view: a local page over what the robot noticed, of a bag or of a running graph."""
