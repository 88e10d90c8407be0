"""`jitblas cache keygen|sign|trust`: who vouches for artifacts, and whose word counts here."""

from __future__ import annotations

import argparse
import getpass
import os
import socket
from typing import TYPE_CHECKING

from jitblas import config
from jitblas.cli.cache.choosing import filled_store, verified
from jitblas.errors import CacheError
from jitblas.store import signatures
from jitblas.store.entry import Entry
from jitblas.store.signatures import PublicKey, Refused, Signer

if TYPE_CHECKING:
    from jitblas.cli.cache import Add


def add_actions(add: Add) -> None:
    made = add("keygen", "make a pair of keys: the secret one in FILE, the public one in FILE.pub", _keygen)
    made.add_argument("file", metavar="FILE", help="for the secret key; nothing is overwritten")
    made.add_argument("--comment", help="for people, kept with the public key; default: user@machine")
    signed = add("sign", "sign entries of the store", _sign)
    signed.add_argument("--key", required=True, metavar="FILE", help="the secret key")
    signed.add_argument("keys", nargs="*", metavar="KEY", help="entries, as `cache show` takes them; default: all")
    trusted = add("trust", "trust what a key signs, or list who is trusted", _trust)
    trusted.add_argument("key", nargs="?", metavar="KEY", help="a FILE.pub, or the line in it; none: list")
    trusted.add_argument("--remove", action="store_true", help="trust it no more")


def _keygen(arguments: argparse.Namespace) -> int:
    comment = arguments.comment if arguments.comment is not None else _user_at_machine()
    public = signatures.generate(arguments.file, " ".join(comment.split()))
    print(public)
    print(f"secret key in {arguments.file}; public key in {arguments.file}.pub, for those who are to trust it")
    return 0


def _user_at_machine() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # an unknown uid
        user = str(os.geteuid())
    return f"{user}@{socket.gethostname()}"


def _sign(arguments: argparse.Namespace) -> int:
    signer = Signer(arguments.key)
    store = filled_store()
    with store.lock("sign", config.lock_timeout()):  # two who sign at once would lose each other's
        entries = verified(arguments.keys, store)
        unsigned = [entry for entry in entries if not _is_signed(entry, signer)]
        for entry in unsigned:
            try:
                store.replace_meta(entry, signer.sign(entry.meta))
            except FileNotFoundError:
                continue  # removed meanwhile
            except OSError as error:
                raise CacheError(f"{entry.key} cannot be signed: {error.strerror}") from None
    print(f"{len(unsigned)} entries signed with {signer.public.text}, {len(entries) - len(unsigned)} were")
    return 0


def _is_signed(entry: Entry, signer: Signer) -> bool:
    try:
        return bool(signatures.check(entry.meta, {signer.public.text: ""}))
    except Refused:
        return False


def _trust(arguments: argparse.Namespace) -> int:
    path = config.trusted_keys_file()
    keys = signatures.read_trusted(path)
    if arguments.key is None:
        if arguments.remove:
            raise CacheError("which key is to be trusted no more? Give a FILE.pub, or the line in it")
        for text, comment in keys.items():
            print(PublicKey(text, comment))
        print(f"{len(keys)} trusted keys in {path}")
        return 0
    key = _public_key(arguments.key)
    if not arguments.remove:
        signatures.trust(path, key)
    elif key.text in keys:
        signatures.trust_no_more(path, key)
    else:
        raise CacheError(f"{key.text} was not trusted; `jitblas cache trust` lists who is")
    print(f"{'no longer trusted' if arguments.remove else 'trusted'}: {key}, in {path}")
    return 0


def _public_key(text: str) -> PublicKey:
    """The key that a file holds, or that the text itself is."""
    if not os.path.exists(text):
        return PublicKey.parse(text)
    try:
        with open(text, encoding="utf-8") as file:
            return PublicKey.parse(file.readline())
    except (OSError, UnicodeDecodeError) as error:
        raise CacheError(f"{text} cannot be read: {error}") from None
