"""Servers of files on this machine, for as long as a test needs them."""

import getpass
import os
import shutil
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


@contextmanager
def sftp_server(monkeypatch, folder):
    """Start Debian's sshd on a port of its own, with keys of its own; gives the address of its root."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    assert sshd, "sshd is missing (on Debian: apt-get install openssh-server)"
    if os.getuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # which a service would make when it starts
    secrets = folder / "ssh"
    secrets.mkdir(mode=0o700)
    keygen = shutil.which("ssh-keygen", path=f"{os.environ['PATH']}:{os.path.dirname(sshd)}/../bin")
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(secrets / name)], check=True)
    port = free_port()
    (secrets / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {secrets}/host\nPidFile none\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {secrets}/user.pub\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "Subsystem sftp internal-sftp\n"
    )
    with served([sshd, "-D", "-e", "-f", str(secrets / "config")], port):
        keys = {"key_filename": str(secrets / "user"), "look_for_keys": False, "allow_agent": False}
        monkeypatch.setitem(fsspec.config.conf, "sftp", keys)
        yield f"sftp://{getpass.getuser()}@127.0.0.1:{port}"
        fsspec.filesystem("sftp", host="127.0.0.1", port=port, username=getpass.getuser()).client.close()
