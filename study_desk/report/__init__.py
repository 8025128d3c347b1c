"""The session report, the coding page, and what they show of a bag."""
