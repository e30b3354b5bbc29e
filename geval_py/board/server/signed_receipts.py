"""Signed receipts of uploads (Ed25519, RFC 8032): who sent what, and when its last byte arrived.

The private key is the file ``receipt.key`` beside board.yaml; the server publishes the public one as
``/receipt-key``. A receipt is a JSON document; its signature is over the other fields, as JSON with sorted keys and
without spaces.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Any, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from geval_py.errors import DataError, UnreadableFileError
from geval_py.reading.rewriting import written_whole
from geval_py.text import named, visible, words

KEY_FILE = "receipt.key"
SUBMISSION, TRIAL = "submission", "trial"  # the kinds
FIELDS = words("number kind board submitter file test sha256 bytes arrived key")
SIGNATURE = "signature"
Receipt: TypeAlias = "dict[str, Any]"


class ReceiptError(DataError):
    """A receipt is not what it says; ``reason`` is one sentence."""

    reason: str

    def __str__(self) -> str:
        return f"{named(self.path)} is not a valid receipt: {self.reason}"


def signing_key(folder: str) -> Ed25519PrivateKey:
    """Return the private key of a board, which a first call makes; raises UnreadableFileError."""
    path = os.path.join(folder, KEY_FILE)
    try:
        if not os.path.exists(path):
            content = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            with written_whole(path) as file:  # readable for nobody else
                file.write(content)
        with open(path, "rb") as file:
            key = load_pem_private_key(file.read(), password=None)
    except OSError as error:
        raise UnreadableFileError(path=path, reason=error.strerror or str(error)) from error
    except ValueError as error:
        raise UnreadableFileError(path=path, reason="it contains no private key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UnreadableFileError(path=path, reason="it contains no Ed25519 key")
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """Return the public key of a private one, in base 64."""
    return b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode("ascii")


def sign(key: Ed25519PrivateKey, receipt: Receipt) -> str:
    """Return a receipt with its key and signature, as JSON."""
    told = receipt | {"key": public_text(key)}
    return json.dumps(told | {SIGNATURE: b64encode(key.sign(_signed(told))).decode("ascii")})


def _signed(receipt: Receipt) -> bytes:
    told = {name: receipt.get(name) for name in FIELDS}
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode()


def verify(path: str, text: str, key: str) -> Receipt:
    """Return the receipt in the text of a file, if it was signed with the public ``key``; raises ReceiptError.

    The text may also be the whole answer to an upload, which has the receipt as a string.
    """
    try:
        receipt = json.loads(text)
        if "receipt" in receipt:
            receipt = json.loads(receipt["receipt"])
        signature = b64decode(receipt[SIGNATURE], validate=True)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ReceiptError(path=path, reason="it is not JSON with a signature") from error
    if set(receipt) != {*FIELDS, SIGNATURE}:
        raise ReceiptError(path=path, reason="its fields are not those of a receipt")
    if receipt["key"] != key:
        raise ReceiptError(path=path, reason=f"it was signed with another key, `{visible(str(receipt['key']))}`")
    try:
        Ed25519PublicKey.from_public_bytes(b64decode(key, validate=True)).verify(signature, _signed(receipt))
    except (InvalidSignature, Base64Error, ValueError) as error:
        raise ReceiptError(path=path, reason="its signature does not match its content") from error
    return dict(receipt)
