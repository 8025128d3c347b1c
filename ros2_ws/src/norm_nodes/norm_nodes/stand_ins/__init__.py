"""Nodes for a machine without a robot or an installed ROS, whose rosbag2, audio_common and v4l2_camera do the same."""
