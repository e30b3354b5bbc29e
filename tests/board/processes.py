"""Processes that should have ended."""

import time
from pathlib import Path


def is_alive(pid):
    """Whether a process is still there after ten seconds; one that ended and is not waited for is not."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True
