"""What the system says on known input, kept as files: a restructuring must not change a line of them."""
