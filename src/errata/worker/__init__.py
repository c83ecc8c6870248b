"""One worker process of a run: claim chunks, compute them, retry, throttle, stop."""
