"""Archives as no one should send them, made byte by byte where the libraries would refuse to."""

import io
import tarfile
import zipfile

LINE = b"the:0.5 :0.5\n"
OUT = "test-A/out.tsv"
BLOCK = 512


def tar_of(*members, ending="tar", end=True):
    """Pack members: a name and bytes, a TarInfo, or raw bytes of a header and its data."""
    mode = {"tar": "", "tgz": "gz", "tar.gz": "gz", "tar.xz": "xz"}[ending]
    if all(isinstance(member, tuple) for member in members) and end:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=f"w:{mode}") as archive:
            for name, data in members:
                archive.addfile(tar_info(name, len(data)), io.BytesIO(data))
        return buffer.getvalue()
    raw = b"".join(map(tar_member, members))
    return raw + (bytes(2 * BLOCK) if end else b"")


def tar_info(name, size=0, type=tarfile.REGTYPE, linkname=""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, type, linkname
    return info


def tar_member(member):
    if isinstance(member, bytes):
        return member
    info, data = (tar_info(member[0], len(member[1])), member[1]) if isinstance(member, tuple) else (member, b"")
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % BLOCK)


def zip_of(*members, method=zipfile.ZIP_DEFLATED):
    """Pack members: a name, or a ZipInfo, and bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data, compress_type=method)
    return buffer.getvalue()


def zip_info(name, mode=0):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info
