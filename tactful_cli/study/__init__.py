"""`tactful study`."""
