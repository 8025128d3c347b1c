"""What every node stands on: endpoints, lifecycle, parameters, heartbeat and engines."""
