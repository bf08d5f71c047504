"""DPoP proofs (RFC 9449), and the nonces of servers for them (docs/design/protocol.md "DPoP")."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from typing import Iterable, List, Optional, Sequence

from ._keys import SigningKey
from ._passport import encode_json, parse_passport
from ._profiles import RouteProfile
from ._request_url import RequestUrl
from ._syntax import encode_base64url
from ._transcript import Header, sha256_base64url
from .errors import SigningError

_MAX_PROOF_BYTES = 4096
_MAX_ORIGINS = 256
# RFC 9449 section 8.1.
_NONCE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")
_TOKEN = re.compile(r"DPoP +(\S+)", re.IGNORECASE)
_CHALLENGE = re.compile(r"(?:^|,)\s*DPoP\s", re.IGNORECASE)
_ASKS = re.compile(r'[\s,]error="?use_dpop_nonce"?(?:[\s,]|\Z)', re.IGNORECASE)


def check_dpop_request(route: RouteProfile, headers: Sequence[Header], sign_headers: Sequence[str], nonce: Optional[str]) -> None:
    """Raises SigningError `header_reserved`, `header_invalid`. `headers` are without an earlier proof."""
    if route.has_own_authorization or any(name.lower() == "dpop" for name, _ in headers):
        raise SigningError(
            "header_reserved",
            "a DPoP proof and its passport travel in DPoP and Authorization, which the application or passport_header uses",
        )
    if sign_headers:
        raise SigningError("header_invalid", "a DPoP proof cannot cover headers")
    if nonce is not None and not _NONCE.fullmatch(nonce):
        raise SigningError("header_invalid", "the DPoP nonce is not one of RFC 9449")


def sign_dpop(
    key: SigningKey, passport: str, method: str, url: RequestUrl, jti: str, issued_at: int, nonce: Optional[str]
) -> List[Header]:
    """The headers to set. Raises SigningError."""
    claims = {
        "jti": jti,
        "htm": method,
        "htu": url.origin + url.target.partition("?")[0],
        "iat": issued_at,
        "ath": sha256_base64url(passport.encode("ascii")),
        **({} if nonce is None else {"nonce": nonce}),
    }
    header = {"typ": "dpop+jwt", "alg": key.algorithm, "jwk": key.public_jwk}
    signing_input = f"{encode_json(header)}.{encode_json(claims)}"
    proof = f"{signing_input}.{encode_base64url(key.sign(signing_input.encode('ascii')))}"
    if len(proof) > _MAX_PROOF_BYTES:
        raise SigningError("credentials_too_large", "the proof is longer than 4 KiB")
    return [("Authorization", f"DPoP {passport}"), ("DPoP", proof)]


def without_earlier_dpop(headers: Sequence[Header]) -> List[Header]:
    """Leaves out passport and proof of an earlier signer, never another token of the application."""
    tokens = [value for name, value in headers if name.lower() == "authorization"]
    found = _TOKEN.fullmatch(tokens[0].strip(" \t")) if len(tokens) == 1 else None
    if found is None or parse_passport(found[1]) is None:
        return list(headers)
    return [header for header in headers if header[0].lower() not in ("authorization", "dpop")]


class ServerNonces:
    """The newest nonce of each origin, of at most 256."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_origin: "OrderedDict[str, str]" = OrderedDict()

    def of(self, origin: str) -> Optional[str]:
        return self._by_origin.get(origin)

    def learn(self, origin: str, status: int, headers: Iterable[Header]) -> bool:
        """Whether the answer denies the request because its proof lacked this nonce."""
        lines = [(name.lower(), value) for name, value in headers]
        nonces = [value for name, value in lines if name == "dpop-nonce"]
        if len(nonces) != 1 or not _NONCE.fullmatch(nonces[0]):
            return False
        with self._lock:
            self._by_origin[origin] = nonces[0]
            self._by_origin.move_to_end(origin)
            if len(self._by_origin) > _MAX_ORIGINS:
                self._by_origin.popitem(last=False)
        challenges = [value for name, value in lines if name == "www-authenticate"]
        return status == 401 and any(_CHALLENGE.search(text) and _ASKS.search(text) for text in challenges)


def nonce_for_gone_body() -> SigningError:
    return SigningError(
        "body_not_replayable",
        "the server denied the request and asks for a DPoP nonce, which is kept; this body can be sent only once: "
        "send the request again",
    )
