"""`tactful bag`: inspect, film, record and play bags, with or without rosbag2."""

from tactful_cli.bag.info import info
from tactful_cli.bag.play_and_record import play, record
from tactful_cli.bag.video import video
from tactful_cli.verb_options import make_group

app = make_group("Inspect, show, record and play rosbag2 bags (docs/how-to/bags.md).")
for command in (info, play, record, video):
    app.command()(command)
