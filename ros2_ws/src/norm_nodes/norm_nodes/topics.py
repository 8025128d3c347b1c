"""The names of Tactful's topics, relative to the namespace of its nodes."""

# The recording is over: the senses finish open speech. Live, only a timeout can show this.
RECORDING_ENDED_TOPIC = "recording_ended"
# The senses have published everything from the recording. The monitor and the selector finish what is open.
SENSES_ENDED_TOPIC = "input_ended"
