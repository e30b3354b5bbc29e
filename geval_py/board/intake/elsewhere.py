"""Submissions are looked into on the workers of a cluster, each in a child process there, as on one machine.

A worker reads the files of the submission, the challenge and its answers under the same paths as the board. One that
cannot is at fault, and not the submission; so is one that has another challenge there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

from geval_py.board.intake.isolation import look_into
from geval_py.board.references import references_of
from geval_py.board.values import FailedError, RejectedError
from geval_py.errors import ClusterError, DataError
from geval_py.text import named

if TYPE_CHECKING:
    from geval_py.board.intake.crossing import Findings
    from geval_py.board.references import References
    from geval_py.board.settings import Settings
    from geval_py.board.values import Parcel
    from geval_py.scoring.cluster import Cluster

Wanted: TypeAlias = "Sequence[tuple[str, str, Sequence[str]]]"
LookInto: TypeAlias = "Callable[[Parcel, str, Settings, Wanted], Findings]"


def looking_on(cluster: Cluster, references: References) -> LookInto:
    """Give what does as :func:`look_into` on a cluster; several threads may call it at once.

    ``references`` are the board's. It raises ClusterError too, also for a worker that has not the same files.
    """
    return partial(_look_on, cluster, references)


def _look_on(
    cluster: Cluster, references: References, parcel: Parcel, _: str, settings: Settings, wanted: Wanted
) -> Findings:
    known = replace(settings, database="")  # which workers need not, and which may have a password in it
    with cluster.watched():
        found = cluster.submit(look_there, parcel, known, list(wanted), dict(references)).result()
    if isinstance(found, str):
        raise ClusterError(address=cluster.address, reason=found)
    if isinstance(found, RejectedError | FailedError):
        raise found
    findings: Findings = found
    return findings


def look_there(
    parcel: Parcel, settings: Settings, wanted: Wanted, references: References
) -> Findings | RejectedError | FailedError | str:
    """Look into a parcel in a place of this machine; gives the errors too, since trying again would not help.

    Of a machine that has not the board's files it says so.
    """
    fault = _fault(parcel, settings, references)
    if fault:
        return fault
    try:
        with TemporaryDirectory(prefix="geval-board-") as place:
            return look_into(parcel, place, settings, wanted)
    except (RejectedError, FailedError) as error:
        return error
    except OSError as error:
        return f"a worker cannot look into a submission: {error.strerror or error}"


def _fault(parcel: Parcel, settings: Settings, references: References) -> str:
    """Say what a machine lacks: a file that is to be looked into, or the challenge as the board has it."""
    names = {output.file for output in parcel.outputs}
    for file in parcel.files:
        if file.name in names and not os.path.isfile(file.path):
            return f"a worker has no {named(file.path)}: TMPDIR has to be a folder that all share"
    try:
        is_same = references_of(settings) == references
    except DataError as error:
        return f"a worker has not all files of the challenge: {str(error).partition(chr(10))[0]}"
    return "" if is_same else f"a worker has another challenge in {named(settings.challenge)}, or other answers"
