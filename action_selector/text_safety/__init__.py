"""Remove instructions hidden in untrusted text."""
