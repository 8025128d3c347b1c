"""Nodes for a machine without a robot or an installed ROS, whose rosbag2, audio_common and v4l2_camera do the same."""

# The module and the class of each, for `norm_nodes.catalogue`.
NODES = {
    "bag_player": "norm_bench.stand_ins.bag_player.BagPlayer",
    "bag_recorder": "norm_bench.stand_ins.bag_recorder.BagRecorder",
    "encounter_player": "norm_bench.stand_ins.encounter_player.EncounterPlayer",
    "microphone": "norm_bench.stand_ins.microphone.MicrophoneNode",
    "typed_robot": "norm_bench.stand_ins.typed_robot.TypedRobotNode",
    "webcam": "norm_bench.stand_ins.webcam.WebcamNode",
}
