"""Reads the key file and the state beside it, as `proofgate enroll` and `proofgate agent` write them."""

from __future__ import annotations

import os
import re
import stat
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, Mapping, Optional, Tuple

from ._keys import SigningKey, parse_signing_key
from ._passport import Passport, parse_passport
from ._profiles import Profiles, Reader, read_coordinates, read_profiles, read_routes
from ._syntax import (
    is_base64url_of_32_bytes,
    is_identifier,
    is_key_binding,
    is_key_id,
    parse_strict_json,
)
from .errors import SigningError

_MAX_KEY_BYTES = 16 * 1024
_MAX_STATE_BYTES = 8 * 1024 * 1024
_ENROLLMENT_FORMAT = "proofgate.enrollment-state/v1"
_BROKER_FORMAT = "proofgate.broker-state/v1"
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,9})?Z")


@dataclass(frozen=True)
class Identity:
    """A key with its profiles and passports; replaced as a whole."""

    key: SigningKey
    files: Tuple[Profiles, ...]
    passports: Optional[Mapping[str, Passport]]  # by audience; None: the key signs its own
    expires_at: Optional[float]  # of an enrolled key


def read_identity(key_file: str, profile_file: Optional[str]) -> Identity:
    """Raises SigningError with the code of the command line."""
    path = settled_key_file(key_file)
    key = parse_signing_key(_read(path, _MAX_KEY_BYTES, secret=True), key_file)
    broker = _read_state(f"{path}.broker.json", "broker_state_invalid")
    files: Optional[Tuple[Profiles, ...]] = None
    if profile_file is not None:
        files = (_read_profile_file(profile_file),)
    passports = None
    if broker is not None:
        passports = _read_passports(broker, key)
        if files is None:
            documents = broker.required("signing_profiles", lambda value: isinstance(value, list))
            files = tuple(read_profiles(document, key_file) for document in documents)
    if files is not None:
        return Identity(key, files, passports, None)
    enrolled, expires_at = _read_enrolled(
        _read_state(f"{path}.enrollment.json", "enrollment_state_invalid"), key, key_file
    )
    return Identity(key, (enrolled,), None, expires_at)


def fingerprint_of(key_file: str, profile_file: Optional[str]) -> Tuple[object, ...]:
    """Differs when a file was replaced."""
    paths = [key_file, f"{key_file}.enrollment.json", f"{key_file}.broker.json"]
    return tuple(map(_version_of, paths if profile_file is None else [*paths, profile_file]))


def _version_of(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def settled_key_file(key_file: str) -> str:
    """Follows the agent's link once, so that the key and its state match while the agent replaces them.

    key.pem -> .key.pem.current/key.pem, and .key.pem.current -> .key.pem.7
    """
    directory, name = os.path.split(key_file)
    current = f".{name}.current"
    try:
        if os.readlink(key_file) != os.path.join(current, name):
            return key_file
        folder = os.readlink(os.path.join(directory, current))
    except OSError:
        return key_file
    is_pair = re.fullmatch(re.escape(f".{name}.") + r"[1-9][0-9]{0,14}", folder)
    return os.path.join(directory, folder, name) if is_pair else key_file


def _read(path: str, max_bytes: int, secret: bool) -> bytes:
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise SigningError("file_not_found", f"{path} does not exist") from None
    except NotADirectoryError:
        raise SigningError("file_not_found", f"{path} does not exist") from None
    except OSError as error:
        raise SigningError("file_unreadable", f"{path} cannot be read ({error.errno})") from None
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        os.close(descriptor)
        raise SigningError("file_is_directory", f"{path} is a directory")
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(found.st_mode):
            raise SigningError("file_not_regular", f"{path} is not a regular file")
        if secret and os.name == "posix" and found.st_mode & 0o077:
            mode = f"{found.st_mode & 0o777:04o}"
            raise SigningError(
                "file_permissions", f"{path} has mode {mode}: only its owner may have access"
            )
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise SigningError("file_too_large", f"{path} is larger than {max_bytes} bytes")
    return data


def _read_state(path: str, code: str) -> Optional[Reader]:
    try:
        data = _read(path, _MAX_STATE_BYTES, secret=True)
    except SigningError as error:
        if error.code == "file_not_found":
            return None
        raise
    return Reader(_parse(data, code, path), code, path)


def _parse(data: bytes, code: str, path: str) -> Any:
    try:
        return parse_strict_json(data.decode("utf-8"))
    except ValueError:
        raise SigningError(code, f"{path}: not valid JSON, or a member occurs twice") from None


def _read_profile_file(path: str) -> Profiles:
    data = _read(path, _MAX_STATE_BYTES // 2, secret=False)
    return read_profiles(_parse(data, "profile_invalid", path), path)


def _read_passports(state: Reader, key: SigningKey) -> Dict[str, Passport]:
    state.required("format", lambda value: value == _BROKER_FORMAT)
    if state.required("key_thumbprint", is_identifier) != key.thumbprint:
        raise state.error("is for another key")
    passports: Dict[str, Passport] = {}
    for item in state.items("passports"):
        audience = item.required("audience", is_identifier)
        passport = parse_passport(item.required("passport", lambda value: isinstance(value, str)))
        if passport is None or passport.audience != audience:
            raise item.error("passport is not one for this audience")
        if passport.holder_thumbprint != key.thumbprint:
            raise item.error("passport is not one for this key")
        passports.setdefault(audience, passport)
    return passports


def _read_enrolled(
    state: Optional[Reader], key: SigningKey, key_file: str
) -> Tuple[Profiles, float]:
    if state is None or not {"enrolled", "attempt"} & set(state.members):
        raise SigningError(
            "enrollment_missing",
            f"{key_file} has no enrollment beside it: run proofgate enroll or give a profile file",
        )
    state.required("format", lambda value: value == _ENROLLMENT_FORMAT)
    if state.required("key_thumbprint", is_base64url_of_32_bytes) != key.thumbprint:
        raise SigningError(
            "enrollment_state_mismatch", f"the enrollment beside {key_file} is another key's"
        )
    if "enrolled" not in state.members:
        raise SigningError("enrollment_pending", f"{key_file} is not enrolled yet")
    enrolled = Reader(state.members["enrolled"], state.code, f"{state.place}: enrolled")
    derived = Reader(
        enrolled.members.get("derived_key"), state.code, f"{state.place}: derived_key"
    )
    derived.required("key_id", is_key_id)
    status = derived.required("status", lambda value: value in ("active", "revoked", "expired"))
    expires_at = _seconds(derived.required("expires_at", _is_moment))
    if status == "revoked":
        raise SigningError("key_revoked", "this key was revoked: enroll a new one")
    if status == "expired" or time.time() >= expires_at:
        raise key_expired(key_file)
    coordinates = read_coordinates(derived, enrolled.required("auth_site", is_identifier))
    return Profiles(coordinates, read_routes(enrolled, "signing_profiles")), expires_at


def key_expired(key_file: str) -> SigningError:
    return SigningError("key_expired", f"the key {key_file} has expired: enroll again")


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and _seconds(value) > 0
    except ValueError:
        return False


def _seconds(text: str) -> float:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError("not a moment")
    moment = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S")
    return moment.replace(tzinfo=timezone.utc).timestamp()
