"""The suites as tasks of inspect_ai: a model alone, or the robot, answers the same samples."""
