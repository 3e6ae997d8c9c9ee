"""Ten connections of 10 s for each of two controllers, in random order, one row each: trial.py RESULTS.csv.

Runs inside `fullpipe shell`, whose server is `iperf3 -s`.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

ARMS = ["cubic", "bbr"] * 10
random.Random(1).shuffle(ARMS)
rows = ["arm,bytes,seconds,rtt_ms,retransmits"]
for arm in ARMS:
    command = ["iperf3", "-c", os.environ["FULLPIPE_SERVER"], "-C", arm, "-t", "10", "-J"]
    end = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["end"]
    received, sender = end["sum_received"], end["streams"][0]["sender"]
    values = (received["bytes"], received["seconds"], sender["mean_rtt"] / 1000, sender["retransmits"])
    rows.append(",".join(map(str, (arm, *values))))
Path(sys.argv[1]).write_text("\n".join(rows) + "\n")
