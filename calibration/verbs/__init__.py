"""`tactful calibrate`: fit on labels what the robot's decisions rest on, and say how well it holds."""
