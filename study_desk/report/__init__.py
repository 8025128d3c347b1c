"""The session report, the review server and clips."""
