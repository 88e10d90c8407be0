"""Who vouches for an entry: ed25519 signatures over its meta.json, which holds its key and the digests of its files.

Secret keys are PEM files, public keys one line `ed25519 BASE64 comment`; a file of such lines says who is trusted.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jitblas.errors import CacheError
from jitblas.files import write_whole
from jitblas.store.folders import refusal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FIELD = "signatures"
"""Of meta.json: public key -> signature of all other fields, both in base64."""

_PURPOSE = b"jitblas artifact\n"
"""Begins what is signed, so that a signature given for something else does not count here."""

_KIND = "ed25519"


class Refused(Exception):
    """An artifact from elsewhere that must not be placed; the text says why."""


class Untrusted(Refused):
    """It is signed, and by nobody who is trusted."""


class PublicKey(NamedTuple):
    """A public key: 32 bytes in base64, and a comment for people."""

    text: str
    comment: str = ""

    @staticmethod
    def parse(line: str) -> PublicKey:
        """The key that a line means; CacheError says what is accepted."""
        kind, _, rest = line.strip().partition(" ")
        text, _, comment = rest.strip().partition(" ")
        try:
            data = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            data = b""
        if kind != _KIND or len(data) != 32:
            raise CacheError(
                f"{line.strip()[:60]!r} is no public key; a line such as '{_KIND} BASE64 comment' is accepted"
            )
        return PublicKey(base64.b64encode(data).decode(), comment.strip())

    def __str__(self) -> str:
        return f"{_KIND} {self.text} {self.comment}".rstrip()


def require() -> Any:
    """The module that makes and checks signatures; CacheError says how to get it."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise CacheError(f"signatures need the package cryptography ({error}): pip install 'jitblas[fleet]'") from None
    return ed25519


def generate(path: str, comment: str) -> PublicKey:
    """Make a pair of keys: the secret one in `path`, mode 0600, the public one in `path`.pub; both must be new."""
    require()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for name in (path, f"{path}.pub"):
        if os.path.lexists(name):
            raise CacheError(f"{name} is there already; keys are never overwritten: choose another name")
    secret = Ed25519PrivateKey.generate()
    public = _public_key(secret.public_key(), comment)
    pem = secret.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(path, pem, 0o600)
    _write_new(f"{path}.pub", f"{public}\n".encode(), 0o644)
    return public


def _public_key(key: Ed25519PublicKey, comment: str = "") -> PublicKey:
    return PublicKey(base64.b64encode(key.public_bytes_raw()).decode(), comment)


def _write_new(path: str, data: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
    except OSError as error:
        try:
            os.unlink(path)  # half a key is none
        except OSError:
            pass
        raise CacheError(f"{path} cannot be written: {error.strerror}") from None


class Signer:
    """A secret key, read from its file.

    Attributes
    ----------
    public : the key that its signatures are checked with
    """

    def __init__(self, path: str) -> None:
        require()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        try:
            with open(path, "rb") as file:
                secret = serialization.load_pem_private_key(file.read(), None)
        except OSError as error:
            raise CacheError(f"the secret key {path} cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            secret = None
        if not isinstance(secret, Ed25519PrivateKey):
            raise CacheError(f"{path} is no ed25519 secret key; `jitblas cache keygen FILE` makes one")
        self._secret: Ed25519PrivateKey = secret
        self.public = _public_key(secret.public_key())

    def sign(self, meta: Mapping[str, Any]) -> dict[str, Any]:
        """The same meta.json with this key's signature."""
        signature = base64.b64encode(self._secret.sign(canonical(meta))).decode()
        return {**meta, FIELD: {**meta.get(FIELD, {}), self.public.text: signature}}


def canonical(meta: Mapping[str, Any]) -> bytes:
    """What is signed: every field but the signatures, in one spelling."""
    fields = {name: value for name, value in meta.items() if name != FIELD}
    return _PURPOSE + json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def check(meta: Mapping[str, Any], trusted: Mapping[str, str]) -> str:
    """The trusted key (its base64) that signed meta.json; Refused if there is none.

    `trusted`: public keys in base64, and comments.
    """
    signatures = meta.get(FIELD)
    if not isinstance(signatures, dict) or not signatures:
        raise Refused("it is not signed")
    candidates = [text for text in trusted if text in signatures]
    if not candidates:
        raise Untrusted(f"it is signed by nobody who is trusted here, but by {', '.join(map(str, signatures))}")
    ed25519 = require()
    from cryptography.exceptions import InvalidSignature

    for text in candidates:
        try:
            key = ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(text))
            key.verify(base64.b64decode(signatures[text], validate=True), canonical(meta))
            return text
        except (InvalidSignature, ValueError, TypeError, binascii.Error):
            continue
    raise Refused("its signature is not valid: it was altered")


def read_trusted(path: str) -> dict[str, str]:
    """Public keys (base64) and comments of a file; none if there is no such file.

    Raises
    ------
    CacheError
        Others can write the file or its folder, or a line is no key.
    """
    if not os.path.lexists(path):
        return {}
    try:
        reason = untrusted_file(path)
        if reason is not None:
            raise CacheError(f"the trusted keys {path} do not count: {reason}")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CacheError(f"the trusted keys {path} cannot be read: {error}") from None
    keys = [key for line in lines if (key := _key_of(line)) is not None]
    return {key.text: key.comment for key in keys}


def _key_of(line: str) -> PublicKey | None:
    """The key of a line of trusted keys; None for comments and empty lines."""
    return PublicKey.parse(line) if line.strip() and not line.lstrip().startswith("#") else None


def untrusted_file(path: str) -> str | None:
    """Why a file that decides about trust does not count, or None."""
    owners = (0, os.geteuid())
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    if os.statvfs(path).f_flag & os.ST_RDONLY and found.st_uid in owners:
        return None  # as clusters mount configuration: links in folders of mode 0777 that nobody can write to
    for place in (os.path.realpath(os.path.dirname(path)), os.path.dirname(os.path.realpath(path))):
        reason = refusal(place, owners)
        if reason is not None:
            return f"{place} {reason}"
    if found.st_uid not in owners or found.st_mode & 0o022:
        return "others could have written it (chmod go-w mends that)"
    return None


def trust(path: str, key: PublicKey) -> None:
    """Add a key to the file of trusted keys."""
    _rewrite(path, key, f"{key}\n")


def trust_no_more(path: str, key: PublicKey) -> None:
    """Take a key out of the file of trusted keys."""
    _rewrite(path, key, "")


def _rewrite(path: str, key: PublicKey, line: str) -> None:
    """Replace the lines of a key; what else is in the file stays as it is."""
    kept: list[str] = []
    try:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = file.read().splitlines(keepends=True)
        others = [old for old in kept if (found := _key_of(old)) is None or found.text != key.text]
        if others and not others[-1].endswith("\n"):
            others[-1] += "\n"
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(os.path.realpath(path), "".join([*others, line]).encode(), 0o644)
    except OSError as error:
        raise CacheError(f"the trusted keys {path} cannot be written: {error.strerror}") from None
