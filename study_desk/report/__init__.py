"""The report of a session, the review server and clips."""
