"""People tracked by the robot itself (REP-155)."""
