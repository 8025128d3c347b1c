"""Read and write rosbag2 bags (MCAP and sqlite3) without ROS."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
