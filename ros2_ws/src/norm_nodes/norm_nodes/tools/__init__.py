"""Programs around the nodes: each prints what the command line, a page or a check asks of the ROS graph."""
