"""Five connections of 20 s for each of two controllers, in random order, one row each: results.csv.

Runs inside `fullpipe shell`, whose server is `iperf3 -s`.
"""

import json
import os
import random
import subprocess

ARMS = ["cubic", "bbr"] * 5
random.Random(1).shuffle(ARMS)
print("arm,bytes,seconds,rtt_ms,retransmits")
for arm in ARMS:
    command = ["iperf3", "-c", os.environ["FULLPIPE_SERVER"], "-C", arm, "-t", "20", "-J"]
    end = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["end"]
    received, sender = end["sum_received"], end["streams"][0]["sender"]
    row = (received["bytes"], received["seconds"], sender["mean_rtt"] / 1000, sender["retransmits"])
    print(arm, *row, sep=",", flush=True)
