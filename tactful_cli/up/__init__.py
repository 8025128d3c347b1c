"""`tactful up`: start all nodes of a profile, write a profile for a robot, and check one."""
