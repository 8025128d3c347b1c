"""The faces that the camera shows as faces of REP-155, for robots whose own detector publishes none."""

from rclpy.publisher import Publisher
from std_msgs.msg import Header

from norm_core.records.presence import Presence
from norm_core.records.stamps import split_stamp
from norm_monitor.senses.faces.face_ids import FaceIds
from norm_nodes.base.endpoint import LATCHED
from norm_nodes.base.endpoint_node import EndpointNode
from norm_nodes.tracked_ids import FACES_TRACKED, IDS_TYPE, ROI_TYPE


class HriFaces:
    """Publish the id and the box of each face, and nothing by which a person could be told from another."""

    def __init__(self, node: EndpointNode, humans: str, left_after_s: float) -> None:
        """Advertise below the namespace `humans`. Raises ConfigError without hri_msgs."""
        self._node, self._namespace = node, f"{humans}/faces"
        self._left_after_s = left_after_s
        self._ids_class = node.require_class(IDS_TYPE, "publish_hri")
        self._roi_class = node.require_class(ROI_TYPE, "publish_hri")
        self._tracked = node.advertise(self._ids_class, f"{humans}/{FACES_TRACKED}", LATCHED, "faces, for publish_hri")
        self._boxes: dict[str, Publisher] = {}
        self._face_ids = FaceIds(left_after_s)

    def publish(self, presence: Presence) -> None:
        """Publish the faces of a frame."""
        faces = self._face_ids.follow(presence.stamp_ns, presence.faces)
        self._end_boxes(self._boxes.keys() - faces.keys())
        header = Header(frame_id=presence.frame_id)
        header.stamp.sec, header.stamp.nanosec = split_stamp(presence.stamp_ns)
        self._tracked.publish(self._ids_class(header=header, ids=list(faces)))
        for face_id, face in faces.items():
            if face_id not in self._boxes:
                topic = f"{self._namespace}/{face_id}/roi"
                self._boxes[face_id] = self._node.create_publisher(self._roi_class, topic, LATCHED)
            left, top = _clip(face.left_ratio), _clip(face.top_ratio)
            right, bottom = _clip(face.left_ratio + face.width_ratio), _clip(face.top_ratio + face.height_ratio)
            roi = self._roi_class(header=header, xmin=left, ymin=top, xmax=right, ymax=bottom, c=face.confidence)
            self._boxes[face_id].publish(roi)

    def clear(self) -> None:
        """Publish that no face is tracked; whoever comes next has a new id."""
        self._face_ids = FaceIds(self._left_after_s)
        self._end_boxes(set(self._boxes))
        self._tracked.publish(self._ids_class(header=Header(stamp=self._node.get_clock().now().to_msg())))

    def _end_boxes(self, face_ids: set[str]) -> None:
        for face_id in face_ids:
            self._node.destroy_publisher(self._boxes.pop(face_id))


def _clip(ratio: float) -> float:
    return min(1.0, max(0.0, ratio))
