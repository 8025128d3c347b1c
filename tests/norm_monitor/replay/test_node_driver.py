"""What a player prints, read by the one that started it."""

import sys

from norm_monitor.replay.node_driver import lines_of


def test_lines_of_the_middleware_are_skipped() -> None:
    printed = "print('[RTPS_TRANSPORT_SHM Error] Failed init_port'); print('{\"took_s\": 1}')"
    assert list(lines_of([sys.executable, "-c", printed], 0, [])) == [{"took_s": 1}]
