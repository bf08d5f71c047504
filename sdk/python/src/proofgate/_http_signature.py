"""HTTP message signatures (RFC 9421) of a derived key (docs/design/protocol.md "HTTP Message Signatures")."""

from __future__ import annotations

import base64
import re
from typing import Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ._keys import SigningKey
from ._profiles import Coordinates, RouteProfile
from ._request_url import RequestUrl
from ._transcript import Body, Header, is_body_bound, select_signed_headers, sha256_of_body
from .errors import SigningError

_LABEL = "sig"
_MAX_FIELD_BYTES = 8192
_BARE_QUERY = re.compile(r"[^?]*\?")


class Terms(NamedTuple):
    """The parameters of one signature; times in seconds since the epoch."""

    nonce: str
    created: int
    expires: int


def sign_http_message(
    key: SigningKey,
    coordinates: Coordinates,
    route: RouteProfile,
    method: str,
    url: RequestUrl,
    headers: Sequence[Header],
    extra: Iterable[str],
    body: Body,
    terms: Terms,
) -> Tuple[Header, ...]:
    """The headers to set, in place of the request's own. Raises SigningError."""
    if coordinates.key_id is None:
        raise SigningError("key_id_missing", "the profile names no key_id")
    if coordinates.key_binding != "software":
        raise SigningError("passport_required", "a broker's passport is needed for this profile")
    if _BARE_QUERY.fullmatch(url.target):
        raise SigningError(
            "url_not_canonical",
            'an HTTP message signature cannot tell a URL that ends with "?" from one without: leave it out',
        )
    _refuse_other_signatures(headers)
    digest = _digest_line(route, method, headers, body)
    covered = _covered(route, headers, list(extra), digest)
    names = ["@method", "@target-uri", *(name for name, _ in covered)]
    params = ";".join(
        (
            f"({' '.join(map(_quoted, names))})",
            f"created={terms.created};expires={terms.expires};nonce={_quoted(terms.nonce)}",
            f"keyid={_quoted(coordinates.key_id)};tag={_quoted('proofgate/' + coordinates.auth_site)}",
        )
    )
    lines = [("@method", method), ("@target-uri", url.origin + url.target), *covered]
    base = "".join(f'"{name}": {value}\n' for name, value in lines) + f'"@signature-params": {params}'
    if len(_LABEL) + 1 + len(params) > _MAX_FIELD_BYTES:
        raise SigningError("credentials_too_large", "the proof is longer than 8 KiB")
    signature = base64.b64encode(key.sign(base.encode("ascii"))).decode("ascii")
    return (
        *([] if digest is None else [digest]),
        ("Signature-Input", f"{_LABEL}={params}"),
        ("Signature", f"{_LABEL}=:{signature}:"),
    )


def covers_digest(signature_input: str) -> bool:
    """Whether a signature of this signer has a digest beside it."""
    return '"content-digest"' in signature_input


def _digest_line(
    route: RouteProfile, method: str, headers: Sequence[Header], body: Body
) -> Optional[Header]:
    """An application's digest may be that of an earlier body, so that it is replaced where the body is bound."""
    is_given = any(name.lower() == "content-digest" for name, _ in headers)
    if not is_body_bound(method, route.body, body) and not (is_given and route.body == "bound"):
        return None
    digest = base64.b64encode(sha256_of_body(body)).decode("ascii")
    return "Content-Digest", f"sha-256=:{digest}:"


def _covered(
    route: RouteProfile, headers: Sequence[Header], extra: List[str], digest: Optional[Header]
) -> List[Header]:
    given = list(headers)
    if digest is not None:
        given = [header for header in headers if header[0].lower() != "content-digest"] + [digest]
        extra.append("content-digest")
        if any(name.lower() == "content-type" for name, _ in given):
            extra.append("content-type")
    covered = select_signed_headers(given, route, extra)
    for name, _ in covered:
        # A signature cannot cover itself, and no verifier compares the digest of a body that is not bound.
        if name in ("signature", "signature-input") or (name == "content-digest" and digest is None):
            raise SigningError(
                "header_invalid", f"an HTTP message signature for this route cannot cover {name}"
            )
    return covered


def _refuse_other_signatures(headers: Sequence[Header]) -> None:
    """An earlier signature of this signer is replaced, never one of the application."""
    inputs = [value for name, value in headers if name.lower() == "signature-input"]
    if not inputs and not any(name.lower() == "signature" for name, _ in headers):
        return
    if len(inputs) == 1 and _is_of_signer(inputs[0]):
        return
    raise SigningError(
        "header_reserved",
        "the proof of this request travels in Signature and Signature-Input, and the application has its own",
    )


def _is_of_signer(value: str) -> bool:
    return value.startswith(f"{_LABEL}=(") and ';tag="proofgate/' in value and ", " not in value


def _quoted(text: str) -> str:
    return '"' + re.sub(r'["\\]', lambda found: "\\" + found[0], text) + '"'
