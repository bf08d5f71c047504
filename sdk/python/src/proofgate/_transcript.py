"""The text that a proof signs (docs/design/protocol.md "Transcript")."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Dict, Iterable, List, Sequence, Tuple, Union

from ._profiles import RouteProfile
from ._syntax import encode_base64url, is_signable_header_name
from .errors import SigningError

Header = Tuple[str, str]

_NOT_BOUND = "-"
_BODY_METHODS = ("POST", "PUT", "PATCH")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True)
class BodyDigest:
    """A body that is not in memory: its SHA-256 and its length in bytes."""

    sha256: bytes
    length: int

    def __post_init__(self) -> None:
        if len(self.sha256) != 32 or self.length < 0:
            raise ValueError("a SHA-256 has 32 bytes, and a length is not negative")


Body = Union[bytes, BodyDigest, None]


def sha256_base64url(data: bytes) -> str:
    return encode_base64url(hashlib.sha256(data).digest())


def is_body_bound(method: str, rule: str, body: Body) -> bool:
    """Whether a proof must bind this body."""
    length = body.length if isinstance(body, BodyDigest) else len(body or b"")
    return rule == "bound" and (length > 0 or method in _BODY_METHODS)


def sha256_of_body(body: Body) -> bytes:
    return body.sha256 if isinstance(body, BodyDigest) else hashlib.sha256(body or b"").digest()


def content_sha256(method: str, rule: str, body: Body) -> str:
    return encode_base64url(sha256_of_body(body)) if is_body_bound(method, rule, body) else _NOT_BOUND


def select_signed_headers(
    given: Sequence[Header], route: RouteProfile, extra: Iterable[str]
) -> List[Header]:
    """The headers of the route and of the caller, sorted. Raises `header_invalid`, `header_missing`, `header_repeated`."""
    names = sorted({*route.signed_headers, *(name.lower() for name in extra)})
    if not names:
        return []
    values: Dict[str, List[str]] = {}
    for name, value in given:
        values.setdefault(name.lower(), []).append(value.strip(" \t"))
    for name in names:
        if not is_signable_header_name(name, route.has_own_authorization):
            raise SigningError("header_invalid", f"{name!r} is not a header that can be signed")
    return [(name, _one_value(name, values.get(name, []))) for name in names]


def _one_value(name: str, values: List[str]) -> str:
    if not values:
        raise SigningError("header_missing", f"the header {name} must be signed and is not given")
    if len(values) > 1:
        raise SigningError("header_repeated", f"the header {name} must be signed and is given twice")
    if _HEADER_VALUE.fullmatch(values[0]) is None:
        raise SigningError(
            "header_invalid", f"the header {name} must be signed: its value must be visible ASCII"
        )
    return values[0]


def format_transcript(lines: Sequence[Tuple[str, object]], headers: Sequence[Header]) -> bytes:
    names = ",".join(name for name, _ in headers) or _NOT_BOUND
    text = "transcript-v1\n" + "".join(f"{name}={value}\n" for name, value in lines)
    text += f"headers={names}\n"
    text += "".join(f"header.{name}={value}\n" for name, value in headers)
    return text.encode("ascii")
