"""Read, write, recover and cut rosbag2 bags (MCAP and sqlite3) without ROS."""

from typing import TYPE_CHECKING

from norm_core.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from norm_core.bags.bag_cut import BagCut, cut_bag
    from norm_core.bags.errors import BagError
    from norm_core.bags.reader import BagMessage, BagReader
    from norm_core.bags.recovery.bag_recovery import recover_bag
    from norm_core.bags.recovery.report import BagRecoveryReport
    from norm_core.bags.topic import BagTopic
    from norm_core.bags.topic_names import TopicNames
    from norm_core.bags.writer import BagWriteError, BagWriter

__all__ = [
    "BagCut",
    "BagError",
    "BagMessage",
    "BagReader",
    "BagRecoveryReport",
    "BagTopic",
    "BagWriteError",
    "BagWriter",
    "TopicNames",
    "cut_bag",
    "recover_bag",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "bag_cut": ("BagCut", "cut_bag"),
            "errors": ("BagError",),
            "reader": ("BagMessage", "BagReader"),
            "recovery.bag_recovery": ("recover_bag",),
            "recovery.report": ("BagRecoveryReport",),
            "topic": ("BagTopic",),
            "topic_names": ("TopicNames",),
            "writer": ("BagWriteError", "BagWriter"),
        },
    )
