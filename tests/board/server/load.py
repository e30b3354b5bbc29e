"""A load on a server in processes of its own: many who read its pages while others upload at a deadline.

The tests see that nothing is lost.
"""

import contextlib
import json
import random
import re
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from deployed import ask, processes_of, send, serving, sessions, tokens

LINES, WORDS_A_LINE = 23_000, 20  # of a large output: about 6 MB
PAUSE = (2, 8)  # seconds between two pages of a reader
POLL_SECONDS = 2  # between two looks at an upload
PAGES = ("/", "/me", "/index.html", "/api/me")

WRK = """\
local cookies, pages = {{{cookies}}}, {{{pages}}}
local number = 0
function setup(thread) thread:set("number", number); number = number + 1 end
function init() math.randomseed(number) end
function delay() return math.random({least}, {most}) end
function request()
  local headers = {{["Cookie"] = cookies[math.random(#cookies)], ["Connection"] = "close"}}
  return wrk.format("GET", pages[math.random(#pages)], headers)
end
function done(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
  io.write(string.format('{{"pages": %d, "p50": %d, "p95": %d, "p99": %d, "most": %d, "failed": %d}}\\n',
    summary.requests, latency:percentile(50), latency:percentile(95), latency:percentile(99), latency.max, failed))
end
"""


@dataclass(frozen=True)
class Size:
    """How many read and upload at once; who is large, uploads 6 MB, and reads by Debian's wrk."""

    readers: int
    uploaders: int
    is_large: bool = False


SMALL, LARGE = Size(10, 4), Size(200, 40, is_large=True)


@dataclass(frozen=True)
class Found:
    """The receipts and states of the uploads; what wrk measured, in ms; seconds of the uploads, of looks at them, and
    of all; MB by kind of process."""

    receipts: list
    states: list
    pages: dict
    sent: list
    looks: list
    seconds: float
    memory: dict


class Outputs:
    """Outputs of a challenge by their number; large ones are of 6 MB, with numbers as ``repr`` writes them."""

    def __init__(self, folder):
        """Write the questions and answers of test-A."""
        chance = random.Random(5)
        vocabulary = [f"w{int(chance.paretovariate(0.6)) % 20_000}" for _ in range(200_000)]
        questions = "".join(f"left {number}\tright {number}\n" for number in range(LINES))
        Path(folder, "challenge/test-A/in.tsv").write_text(questions)
        answers = chance.choices(vocabulary, k=LINES)
        Path(folder, "answers/test-A/expected.tsv").write_text("".join(f"{word}\n" for word in answers))
        self._lines = [self._line(chance, vocabulary) for _ in range(LINES)]

    @staticmethod
    def _line(chance, vocabulary):
        words = list(dict.fromkeys(chance.choices(vocabulary, k=WORDS_A_LINE)))
        shares = [chance.expovariate(1) ** 2 for _ in words]
        most = sum(shares) * 1.25
        told = (f"{word}:{share / most!r}" for word, share in zip(words, shares, strict=True))
        return f"{' '.join(told)} :0.2\n"

    def __call__(self, number):
        lines = list(self._lines)
        random.Random(number).shuffle(lines)
        return "".join(lines)


class Memory:
    """The most memory that each process has held, in MB, by its kind."""

    def __init__(self, pid):
        self._pid, self._ended, self.most = pid, threading.Event(), {}
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self):
        while not self._ended.wait(0.2):
            for pid in processes_of(self._pid):
                with contextlib.suppress(OSError, TypeError):
                    status = Path(f"/proc/{pid}/status").read_text()
                    command = Path(f"/proc/{pid}/cmdline").read_text()
                    kind = next((one for one in ("serve", "work", "site") if f"board\0{one}\0" in command), "child")
                    held = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
                    self.most[kind] = max(self.most.get(kind, 0), held)

    def stop(self):
        """Look no more; gives the MB by kind."""
        self._ended.set()
        self._thread.join()
        return {kind: round(most) for kind, most in sorted(self.most.items())}


def put_load(board, contents, size, folder, seconds=40):
    """Upload a content for each team at once, while others read, if any; give what was found when all are settled."""
    names = [f"reader-{number}" for number in range(size.readers)]
    cookies = sessions(board, names)
    secrets = tokens(board, [f"team-{number}" for number in range(size.uploaders)])
    began, ended = threading.Barrier(size.uploaders + 1), threading.Event()
    with serving(board) as (port, process), ThreadPoolExecutor(size.uploaders + size.readers) as threads:
        memory = Memory(process.pid)
        sending = [threads.submit(_upload, port, *one, began) for one in zip(secrets, contents, strict=True)]
        if not size.readers:
            reading = []
        elif size.is_large:
            reading = [threads.submit(_read_pages, port, cookies, seconds, folder)]
        else:
            reading = [threads.submit(_read_as, port, *one, ended) for one in zip(names, cookies, strict=True)]
        began.wait()
        started = time.monotonic()
        try:
            sent = [one.result() for one in sending]
        finally:
            ended.set()
        took = time.monotonic() - started
        pages = [one.result() for one in reading]
        held = memory.stop()
    receipts, states, times, looks = zip(*sent, strict=True)
    return Found(
        receipts,
        list(states),
        pages[0] if pages else {},
        sorted(times),
        sorted(chain.from_iterable(looks)),
        took,
        held,
    )


def _read_pages(port, cookies, seconds, folder):
    """Read pages as people do for some seconds; gives what wrk measured."""
    quoted = [", ".join(f'"{one}"' for one in many) for many in (cookies, PAGES)]
    script = folder / "read.lua"
    least, most = (1000 * pause for pause in PAUSE)
    script.write_text(WRK.format(cookies=quoted[0], pages=quoted[1], least=least, most=most))
    words = ["wrk", "-t1", f"-c{len(cookies)}", f"-d{seconds}", "--timeout", "30", "-s", script]
    run = subprocess.run([*words, f"http://127.0.0.1:{port}"], check=True, capture_output=True, text=True)
    told = json.loads(run.stdout.splitlines()[-1])
    return {name: value if name in ("pages", "failed") else value / 1000 for name, value in told.items()}


def _read_as(port, name, cookie, ended):
    """Read pages one after the other until an event; gives how many were read, and failed."""
    read = failed = 0
    while not (ended.is_set() and read):
        for page in PAGES:
            status, text = ask(port, "GET", page, Cookie=cookie)
            mark = name if page.endswith("/me") else "My page"  # public pages are the same for everybody
            read, failed = read + 1, failed + (status != 200 or mark not in text.decode())
    return {"pages": read, "failed": failed}


def _upload(port, token, content, began):
    """Upload at the deadline, and follow the upload; gives the receipt, the state, and the seconds of each request."""
    began.wait()
    started = time.monotonic()
    status, answer = send(port, token, content)
    seconds = time.monotonic() - started
    assert status == 201, answer
    looks = []
    while True:
        time.sleep(POLL_SECONDS)
        asked = time.monotonic()
        state = json.loads(ask(port, "GET", answer["state"], Authorization=f"Bearer {token}")[1])
        looks.append(time.monotonic() - asked)
        if state["settled"]:
            return answer["receipt"], state["state"], seconds, looks
