"""`tactful bag`: rosbag2 bags."""
