"""Publish a study: a pseudonymised dataset, and the check that nothing personal is in it."""
