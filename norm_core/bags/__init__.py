"""rosbag2 bags read (MCAP, sqlite3), written (MCAP), mended and cut, without ROS."""
