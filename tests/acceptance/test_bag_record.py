"""`tactful bag record` on types that only the graph's environment has; the bags are read by the rosbags library."""
