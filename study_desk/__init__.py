"""The study desk: logs that can be cited, reviewed and exported. Needs neither ROS nor a model."""
