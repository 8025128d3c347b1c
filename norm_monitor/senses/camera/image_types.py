"""The message types of a camera, separate from decoding, so that their names need no decoder."""

IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
