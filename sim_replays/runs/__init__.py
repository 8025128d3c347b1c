"""Run suites through the robot's nodes: bags of items, transports and result folders."""
