"""Servers of files on this machine, for as long as a test needs them."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import fsspec


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, process):
    """Wait until somebody answers on a port."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended"
        with socket.socket() as one:
            one.settimeout(1)
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nobody answers on port {port}")


@contextmanager
def served(words, port, **options):
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        wait_for(port, process)
        yield
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def s3_server(monkeypatch, folder, *, refuses=False):
    """Start moto's S3 server; gives the file system. One that refuses wants to know who asks, and knows nobody."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    for name, value in {
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": address,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(folder / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    environment = os.environ | ({"INITIAL_NO_AUTH_ACTION_COUNT": "0"} if refuses else {})
    with served([sys.executable, "-m", "moto.server", "-p", str(port)], port, env=environment):
        fsspec.filesystem("s3").clear_instance_cache()
        yield fsspec.filesystem("s3")
        fsspec.filesystem("s3").clear_instance_cache()
