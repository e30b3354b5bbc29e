"""The processor time of tests: it tells which must be marked ``slow``, and with which file a run begins.

Time on the clock would depend on what else the machine does. Processor time is that of a test, of its own fixtures, and of
all processes that it started; fixtures which several tests share count for their file alone.
"""

import os
import sys
import time
from collections import Counter
from os import listdir  # as it is before tests put others in its place
from pathlib import Path

import pytest

SLOW = 1.0  # seconds of the machine on which QUIET_LOOP was measured
TICKS = os.sysconf("SC_CLK_TCK")  # before tests put another function in its place
QUIET_LOOP = 0.024  # seconds, of `loop` on that machine when it does nothing else
SURELY = 5  # times as much as a busy machine lets a test take that is not slow
MANY_MODULES = 20  # a test that is the first to import a library pays for all
SECONDS = Path(__file__).with_name("seconds.tsv")  # of each file, in one process without --long


def pytest_addoption(parser):
    parser.addoption(
        "--write-seconds", action="store_true", help="write the processor time of each file to seconds.tsv"
    )


def pytest_configure(config):
    config.pluginmanager.register(Clock(config), "processor time")


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest: at the end, each process would wait for the one that has such a file."""
    seconds = known_seconds()
    items.sort(key=lambda item: -seconds.get(name_of(item.nodeid), 0.0))


class Clock:
    """Measures the tests of a process, and sums up those of all."""

    def __init__(self, config):
        self.is_writing = config.getoption("--write-seconds")
        self.is_judging = not (config.getoption("--long", False) or config.getoption("--cov", None))
        self.files = Counter()
        self.shared = 0.0  # of the fixtures that were set up for a test and for others
        self.is_sharing = False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if self.is_sharing or fixturedef.scope == "function":
            return (yield)
        self.is_sharing, start = True, processor_time()
        try:
            return (yield)
        finally:
            self.is_sharing = False
            self.shared += processor_time() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        self.modules, self.shared, self.start = len(sys.modules), 0.0, processor_time()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        result = yield
        seconds = processor_time() - self.start - self.shared
        is_marked = item.get_closest_marker("slow") or item.get_closest_marker("long")
        has_imported = len(sys.modules) - self.modules > MANY_MODULES
        if self.is_judging and seconds > SLOW and not is_marked and not has_imported:
            seconds /= max(1.0, loop() / QUIET_LOOP)
            if seconds > SURELY * SLOW:
                pytest.fail(
                    f"takes {seconds:.1f} s of the processor: mark it slow, or make it quicker", pytrace=False
                )
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if report.when == "teardown":
            report.user_properties.append(("processor", processor_time() - self.start))
        return report

    def pytest_runtest_logreport(self, report):
        if report.when == "teardown":
            self.files[name_of(report.nodeid)] += dict(report.user_properties)["processor"]

    def pytest_sessionfinish(self, session):
        if self.is_writing and not hasattr(session.config, "workerinput"):
            # A process that outlives its parent is no longer counted, as if time had gone back.
            files = sorted((known_seconds() | self.files).items())
            lines = (
                f"{name}\t{max(0.0, seconds):.1f}\n" for name, seconds in files if (SECONDS.parent / name).exists()
            )
            SECONDS.write_text("".join(lines))


def known_seconds():
    rows = (line.split("\t") for line in SECONDS.read_text().splitlines())
    return {name: float(number) for name, number in rows}


def name_of(test):
    return test.partition("::")[0].removeprefix("tests/")


def processor_time():
    """Return the seconds that this process took, and all that it started, whether they ended or not."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system + time_of_children("self")


def time_of_children(process):
    """Return the seconds of the processes that a process started and has not waited for; Linux alone knows them."""
    seconds = 0.0
    try:
        tasks = listdir(f"/proc/{process}/task")
    except OSError:
        return seconds
    for task in tasks:
        for child in read(f"/proc/{process}/task/{task}/children").split():
            fields = read(f"/proc/{child}/stat").rpartition(")")[2].split()
            seconds += sum(map(int, fields[11:15])) / TICKS + time_of_children(child)
    return seconds


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:  # the process has ended
        return ""


def loop():
    """Return the processor time of a simple loop, which tells how fast the machine is at the moment."""
    start, number = time.process_time(), 0
    for step in range(500_000):
        number += step
    return time.process_time() - start
