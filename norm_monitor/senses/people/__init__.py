"""People whom the robot already tracks (REP-155)."""
