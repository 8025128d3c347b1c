"""Time, configuration, errors and what this program is: shared by every role."""
