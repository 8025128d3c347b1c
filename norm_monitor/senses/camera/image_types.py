"""What a camera may publish; apart from their decoding, so that naming them needs no decoder."""

IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
