"""The live pipeline of the isolation benchmark: one day, over and over, until it is ended.

``python -m benchmarks.live_job PROJECT``: appends start and seconds of every job to ``live.txt`` in the project, and
writes the last one, as a multiple of ``alone.txt`` when that is there, to ``delay.txt`` for the throttle to watch.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.lake import Lake, Shape

PAUSE = 0.3


def main() -> None:
    """Never ends by itself."""
    root = Path(sys.argv[1])
    lake = Lake(root, Shape(1, 1, 1))
    day = ["2020-01-01"]
    while True:
        started = time.time()
        lake.build(lake.spark, day).writeTo("lake.bench.plain").overwritePartitions()
        seconds = time.time() - started
        with (root / "live.txt").open("a") as log:
            log.write(f"{started} {seconds}\n")
        alone = root / "alone.txt"
        factor = seconds / float(alone.read_text()) if alone.exists() else 1.0
        (root / "delay.new").write_text(f"{factor:.3f}")
        (root / "delay.new").rename(root / "delay.txt")
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
