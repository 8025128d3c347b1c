"""Issues, counts and heartbeats of nodes, and the memory and CPU of their processes."""
