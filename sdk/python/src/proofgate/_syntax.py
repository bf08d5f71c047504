"""Syntax of the small values that passports, transcripts and profiles share (docs/design/protocol.md)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Dict, List, Optional, Tuple

_IDENTIFIER = re.compile(r"[\x21-\x7e]{1,512}")
_KEY_ID = re.compile(r"[\x21-\x7e]{1,128}")
_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}")
_HEADER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
_OF_32_BYTES = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
_SPIFFE_ID = re.compile(r"spiffe://[a-z0-9._-]{1,255}(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]+)+")


def is_identifier(value: object) -> bool:
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None


def is_key_id(value: object) -> bool:
    return isinstance(value, str) and _KEY_ID.fullmatch(value) is not None


def is_method(value: object) -> bool:
    return isinstance(value, str) and _METHOD.fullmatch(value) is not None


def is_subject(value: object) -> bool:
    """A SPIFFE ID has one spelling; other subjects are compared as they are."""
    if not isinstance(value, str) or not is_identifier(value):
        return False
    return value[:7].lower() != "spiffe:" or _SPIFFE_ID.fullmatch(value) is not None


def is_key_binding(value: object) -> bool:
    return value in ("software", "attested_workload")


def is_signable_header_name(value: object, has_own_authorization: bool) -> bool:
    if not isinstance(value, str) or _HEADER_NAME.fullmatch(value) is None:
        return False
    is_passport = value == "authorization" and not has_own_authorization
    return not is_passport and not value.startswith("x-proofgate-")


def is_base64url_of_32_bytes(value: object) -> bool:
    return isinstance(value, str) and _OF_32_BYTES.fullmatch(value) is not None


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> Optional[bytes]:
    """None for anything but the canonical encoding."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return data if encode_base64url(data) == text else None


class DuplicateMember(ValueError):
    """A JSON object has a member twice."""


def parse_strict_json(text: str) -> Any:
    """Parses JSON; raises ValueError for invalid JSON and for duplicate members."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _distinct(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise DuplicateMember("a member occurs twice in one object")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
