"""Signed receipts of uploads, as JSON Web Signatures (RFC 7515) by Ed25519: who sent what, and when it arrived.

The private key is the file ``receipt.key`` beside board.yaml, and the server publishes the public one as
``/receipt-key``; both are JSON Web Keys. So any library for JOSE can verify a receipt.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from geval_py.errors import UnreadableFileError
from geval_py.reading.rewriting import written_whole

KEY_FILE = "receipt.key"
ALGORITHM: Final = "Ed25519"  # RFC 9864


def signing_key(folder: str) -> OKPKey:
    """Return the private key of a board, which a first call makes; raises UnreadableFileError."""
    path = os.path.join(folder, KEY_FILE)
    try:
        if not os.path.exists(path):
            with written_whole(path) as file:  # readable for nobody else
                file.write(json.dumps(OKPKey.generate_key(ALGORITHM).as_dict(private=True)).encode())
        with open(path, encoding="ascii") as file:
            key = OKPKey.import_key(json.load(file))
        if not key.is_private:
            raise ValueError("it is a public key")
    except OSError as error:
        raise UnreadableFileError(path=path, reason=error.strerror or str(error)) from error
    except (JoseError, ValueError) as error:
        raise UnreadableFileError(path=path, reason="it contains no private key") from error
    return key


def public_text(key: OKPKey) -> str:
    """Return the public key of a private one, as JSON."""
    return json.dumps(key.as_dict(private=False))


def sign(key: OKPKey, receipt: dict[str, Any]) -> str:
    """Return a receipt with its signature."""
    return jws.serialize_compact({"alg": ALGORITHM}, json.dumps(receipt), key, [ALGORITHM])
