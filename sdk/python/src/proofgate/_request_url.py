"""Splits a request URL without changing a byte of its target (docs/design/protocol.md "Routes, origins, paths")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional
from urllib.parse import unquote_to_bytes

from .errors import SigningError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#\\]*)(.*)", re.DOTALL)
_DEFAULT_PORT = {"http": ":80", "https": ":443"}
_HOST = (
    r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*"
    r"|\[[0-9a-f:.]+\])"
)
_AUTHORITY = re.compile(_HOST + r"(?::([1-9][0-9]{0,4}))?")
_ORIGIN = re.compile(r"(https?)://(.*)", re.DOTALL)
_TARGET = re.compile(r"/[\x21\x22\x24-\x7e]*")
_NOT_CANONICAL = re.compile(r"[;\\]|//|/\.\.?(?:/|\Z)|%(?![0-9A-Fa-f]{2})")
# Of an unreserved character, "/", "\", "%" or a control character.
_REFUSED_ESCAPE = re.compile(
    r"%(?:[01][0-9a-f]|7f|2[def5]|3[0-9]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9ae])", re.IGNORECASE
)
_C1_CONTROL = re.compile("[\x80-\x9f]")
_MAX_PORT = 65535


@dataclass(frozen=True)
class RequestUrl:
    scheme: str
    authority: str  # lower case, without the scheme's default port
    target: str  # path and query as given; "/" for an empty path

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def parse_request_url(url: str) -> RequestUrl:
    """Raises SigningError `url_invalid` or `url_not_canonical`."""
    match = _URL.fullmatch(url)
    scheme = match[1].lower() if match else ""
    if match is None or scheme not in _DEFAULT_PORT:
        raise SigningError("url_invalid", "the URL must begin with https:// or http://")
    authority = normalize_authority(scheme, match[2])
    if not is_canonical_authority(scheme, authority):
        raise SigningError(
            "url_invalid",
            "the URL must name a host and perhaps a port, without user name or other characters",
        )
    port = re.search(r":([0-9]+)\Z", authority)
    if port is not None and int(port[1]) > _MAX_PORT:
        raise SigningError("url_invalid", f"the port is above {_MAX_PORT}")
    target = match[3] if match[3].startswith("/") else f"/{match[3]}"
    if not is_canonical_target(target):
        raise SigningError(
            "url_not_canonical",
            'the path must have no dot segments, "//", ";", "\\" or needless escapes, and path and '
            'query only visible ASCII characters and no "#"',
        )
    return RequestUrl(scheme, authority, target)


def normalize_authority(scheme: str, authority: str) -> str:
    lower = re.sub("[A-Z]+", lambda capitals: capitals[0].lower(), authority)
    port = _DEFAULT_PORT.get(scheme)
    return lower[: -len(port)] if port is not None and lower.endswith(port) else lower


def is_canonical_authority(scheme: str, authority: str) -> bool:
    if len(authority) > 512 or _AUTHORITY.fullmatch(authority) is None:
        return False
    return normalize_authority(scheme, authority) == authority


def is_canonical_origin(text: str) -> bool:
    match = _ORIGIN.fullmatch(text)
    return match is not None and is_canonical_authority(match[1], match[2])


def is_canonical_target(target: str) -> bool:
    """Whether no server could read the target's path as another path."""
    if _TARGET.fullmatch(target) is None:
        return False
    path = target.partition("?")[0]
    if _NOT_CANONICAL.search(path) or _REFUSED_ESCAPE.search(path):
        return False
    text = decode_escapes(path)
    return text is not None and _C1_CONTROL.search(text) is None


def decode_escapes(text: str) -> Optional[str]:
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        return None
