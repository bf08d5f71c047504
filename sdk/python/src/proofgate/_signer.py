"""Signs requests: a passport that identifies the caller, and a proof that is bound to exactly one request."""

from __future__ import annotations

import logging
import os
import re
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._dpop import ServerNonces, check_dpop_request, sign_dpop, without_earlier_dpop
from ._files import Identity, fingerprint_of, key_expired, read_identity
from ._http_signature import Terms, sign_http_message
from ._passport import Passport, make_passport, parse_passport
from ._profiles import PASSPORT_HEADER, Profiles, RouteProfile, select_profile
from ._request_url import RequestUrl, parse_request_url
from ._syntax import encode_base64url, is_key_id, is_method
from ._transcript import (
    Body,
    Header,
    content_sha256,
    format_transcript,
    select_signed_headers,
    sha256_base64url,
)
from .errors import SigningError

Headers = Union[Mapping[str, str], Iterable[Header]]

_PROOF_SECONDS = 60
_PASSPORT_SECONDS = 300
# A passport is reused for two thirds of its life: verifiers cache it.
_REUSE_SECONDS = 200
_RELOAD_SECONDS = 1.0
_MAX_CREDENTIAL_BYTES = 8192

_log = logging.getLogger("proofgate")


# As in src/protocol/wire-names.ts: upstreams may read other characters as "-", or drop them. Values may be joined from several lines.
_VENDOR_HEADER = re.compile("[^a-z0-9]*" + "[^a-z0-9]*".join("xproofgate"))
_PASSPORT = re.compile(r"(?:^|,)\s*Passport(?:[\s,]|\Z)", re.IGNORECASE)


def is_credential(name: str, value: str) -> bool:
    if name.lower() == "authorization":
        return _PASSPORT.search(value) is not None
    return _VENDOR_HEADER.match(name.lower()) is not None


def without_credentials(headers: Iterable[Header]) -> List[Header]:
    return [(name, value) for name, value in headers if not is_credential(name, value)]


class Secret(str):
    """A header's value that a repr, such as that of a list of headers, does not show."""

    def __repr__(self) -> str:
        return "'[redacted]'"


@dataclass(frozen=True)
class SignedRequest:
    """The credentials of one request. Send `headers` with it once, and sign a repetition anew."""

    headers: Tuple[Header, ...] = field(repr=False)
    url: str
    jti: str
    route_id: str
    key_id: str


# A header that each signed request of the format has, and that no other request of the signer may have.
_PROOF_HEADERS = {
    "transcript-v1": "x-proofgate-signature",
    "http-message-signatures": "signature-input",
    "dpop": "dpop",
}


class Signer:
    """Signs with a key file and the state beside it, and follows both when they are replaced.

    `profile_file` is a signing profile in JSON, for a key without an enrollment. `profile` names the
    profile where several fit. `sign_headers` are header names to sign beyond those of the route.
    `proof` is the format, "transcript-v1", "http-message-signatures" (RFC 9421, without a passport) or "dpop" (RFC 9449,
    which covers neither query, headers nor body); the route must accept it.
    """

    def __init__(
        self,
        key_file: "Union[str, os.PathLike[str]]",
        *,
        profile_file: "Union[str, os.PathLike[str], None]" = None,
        profile: Optional[str] = None,
        sign_headers: Sequence[str] = (),
        proof: str = "transcript-v1",
    ) -> None:
        if proof not in _PROOF_HEADERS:
            raise ValueError(f"proof is one of {', '.join(_PROOF_HEADERS)}")
        self._proof = proof
        self._proof_header = _PROOF_HEADERS[proof]
        self._nonces = ServerNonces()
        self._key_file = os.fspath(key_file)
        self._profile_file = None if profile_file is None else os.fspath(profile_file)
        self._profile = profile
        self._sign_headers = tuple(sign_headers)
        self._now: Callable[[], float] = time.time
        self._new_jti: Callable[[], str] = lambda: encode_base64url(secrets.token_bytes(16))
        self._lock = threading.Lock()
        self._fingerprint = fingerprint_of(self._key_file, self._profile_file)
        self._checked_at = time.monotonic()
        self._loaded = _Loaded(read_identity(self._key_file, self._profile_file))

    def __repr__(self) -> str:
        return f"<Signer {self._key_file!r} {self._loaded.identity.key.thumbprint}>"

    def sign(
        self,
        method: str,
        url: str,
        *,
        headers: Headers = (),
        body: "Union[Body, str]" = None,
        dpop_nonce: Optional[str] = None,
    ) -> SignedRequest:
        """Signs one request. Its target must be sent as it is in `url`, byte for byte. Text is sent as UTF-8.

        `dpop_nonce` is the `DPoP-Nonce` of the server's last answer, with "dpop"; None means the last that Auth got.
        Raises SigningError.
        """
        parsed, selected = self._select(method, url)
        given = list(headers.items() if isinstance(headers, Mapping) else headers)
        content = body.encode("utf-8") if isinstance(body, str) else body
        return self._sign(method, parsed, selected, given, content, dpop_nonce)

    def binds_body(self, method: str, url: str) -> bool:
        """Whether the request's body must be known in order to sign it. Raises SigningError."""
        _, (_, _, route) = self._select(method, url)
        return route.body == "bound" and self._proof != "dpop"

    def signs_for(self, method: str, url: str) -> bool:
        """Whether a profile fits the request."""
        try:
            self._select(method, url)
        except SigningError:
            return False
        return True

    def _select(
        self, method: str, url: str
    ) -> "Tuple[RequestUrl, Tuple[_Loaded, Profiles, RouteProfile]]":
        if not is_method(method):
            raise SigningError("method_invalid", "the method is not an HTTP method")
        parsed = parse_request_url(url)
        loaded = self._current()
        return parsed, (loaded, *select_profile(loaded.identity.files, method, parsed, self._profile))

    def _sign(
        self,
        method: str,
        url: RequestUrl,
        selected: "Tuple[_Loaded, Profiles, RouteProfile]",
        headers: List[Header],
        body: Body,
        dpop_nonce: Optional[str],
    ) -> SignedRequest:
        loaded, profiles, route = selected
        headers = without_credentials(headers)
        if self._proof == "dpop":
            headers = without_earlier_dpop(headers)
        if not route.has_own_authorization and any(n.lower() == "authorization" for n, _ in headers):
            raise SigningError(
                "header_reserved",
                "the passport of this profile travels in Authorization; a route with passport_header allows both",
            )
        if self._proof == "http-message-signatures":
            return self._sign_http_message(method, url, selected, headers, body)
        now, jti = int(self._now()), self._new_jti()
        passport = loaded.passport_for(profiles, route, now, self._new_jti)
        if self._proof == "dpop":
            nonce = self._nonces.of(url.origin) if dpop_nonce is None else dpop_nonce
            check_dpop_request(route, headers, self._sign_headers, nonce)
            credential_lines = sign_dpop(loaded.identity.key, passport.jws, method, url, jti, now, nonce)
            secret = tuple((name, Secret(value)) for name, value in credential_lines)
            return SignedRequest(secret, url.origin + url.target, jti, route.route_id, passport.key_id)
        signed_headers = select_signed_headers(headers, route, self._sign_headers)
        coordinates = profiles.coordinates
        lines = (
            ("auth-site", coordinates.auth_site),
            ("key-id", passport.key_id),
            ("passport-sha256", passport.sha256),
            ("issuer", coordinates.issuer),
            ("subject", coordinates.subject),
            ("audience", route.audience),
            ("route-id", route.route_id),
            ("method", method),
            ("scheme", url.scheme),
            ("authority", url.authority),
            ("target", url.target),
            ("jti", jti),
            ("issued-at", now),
            ("expires-at", min(now + _PROOF_SECONDS, passport.expires_at)),
            ("content-sha256", content_sha256(method, route.body, body)),
        )
        transcript = format_transcript(lines, signed_headers)
        encoded = encode_base64url(transcript)
        if max(len(encoded), len(passport.jws)) > _MAX_CREDENTIAL_BYTES:
            raise SigningError(
                "credentials_too_large", "passport or transcript is longer than 8 KiB"
            )
        signature = encode_base64url(loaded.identity.key.sign(transcript))
        credentials = (
            _passport_line(route, passport.jws),
            ("X-Proofgate-Transcript", Secret(encoded)),
            ("X-Proofgate-Signature", Secret(signature)),
        )
        return SignedRequest(credentials, url.origin + url.target, jti, route.route_id, passport.key_id)

    def _sign_http_message(
        self,
        method: str,
        url: RequestUrl,
        selected: "Tuple[_Loaded, Profiles, RouteProfile]",
        headers: List[Header],
        body: Body,
    ) -> SignedRequest:
        loaded, profiles, route = selected
        if loaded.identity.passports is not None:
            raise SigningError(
                "key_id_missing", "a key with a broker's passports has no key_id of its own to sign HTTP messages"
            )
        now = int(self._now())
        end = loaded.identity.expires_at
        terms = Terms(self._new_jti(), now, now + _PROOF_SECONDS if end is None else min(now + _PROOF_SECONDS, int(end)))
        lines = sign_http_message(
            loaded.identity.key,
            profiles.coordinates,
            route,
            method,
            url,
            headers,
            self._sign_headers,
            body,
            terms,
        )
        secret = tuple((name, Secret(value)) for name, value in lines)
        key_id = profiles.coordinates.key_id or ""
        return SignedRequest(secret, url.origin + url.target, terms.nonce, route.route_id, key_id)

    def _read_answer(self, url: str, status: int, headers: Iterable[Header]) -> bool:
        """Keeps the nonce of an answer. Whether the server denied the request for want of it: repeat it once."""
        return self._proof == "dpop" and self._nonces.learn(parse_request_url(url).origin, status, headers)

    def _current(self) -> "_Loaded":
        if time.monotonic() - self._checked_at >= _RELOAD_SECONDS and self._lock.acquire(False):
            try:
                self._reload_if_replaced()
                self._checked_at = time.monotonic()
            finally:
                self._lock.release()
        loaded = self._loaded
        expires_at = loaded.identity.expires_at
        if expires_at is not None and self._now() >= expires_at:
            raise key_expired(self._key_file)
        return loaded

    def _reload_if_replaced(self) -> None:
        fingerprint = fingerprint_of(self._key_file, self._profile_file)
        if fingerprint == self._fingerprint:
            return
        try:
            self._loaded = _Loaded(read_identity(self._key_file, self._profile_file))
        except SigningError as error:
            if error.code in ("key_revoked", "key_expired"):
                raise
            # The old key goes on while it is valid. A later check tries again.
            _log.warning("the key file was replaced and cannot be used: %s", error)
            return
        self._fingerprint = fingerprint


def _passport_line(route: RouteProfile, jws: str) -> Header:
    if route.has_own_authorization:
        return PASSPORT_HEADER, Secret(jws)
    return "Authorization", Secret(f"Passport {jws}")


@dataclass(frozen=True)
class _CachedPassport:
    jws: str = field(repr=False)
    sha256: str
    key_id: str
    issued_at: int
    expires_at: int


class _Loaded:
    """An identity with the passports that its key has signed."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._made: Dict[Tuple[object, str], _CachedPassport] = {}
        self._given: Dict[str, _CachedPassport] = {
            audience: _cached(passport) for audience, passport in (identity.passports or {}).items()
        }

    def passport_for(
        self, profiles: Profiles, route: RouteProfile, now: int, new_jti: Callable[[], str]
    ) -> _CachedPassport:
        if self.identity.passports is not None:
            return self._given_passport(profiles, route, now)
        key = (profiles.coordinates, route.audience)
        found = self._made.get(key)
        if found is None or not found.issued_at <= now < found.issued_at + _REUSE_SECONDS:
            found = self._made[key] = self._make(profiles, route, now, new_jti())
        return found

    def _given_passport(self, profiles: Profiles, route: RouteProfile, now: int) -> _CachedPassport:
        found = self._given.get(route.audience)
        passport = (self.identity.passports or {}).get(route.audience)
        if found is None or passport is None:
            raise SigningError(
                "passport_required", f"there is no passport for the audience {route.audience}"
            )
        expected = profiles.coordinates
        for name in ("issuer", "subject", "trust_domain", "key_binding"):
            if getattr(passport, name) != getattr(expected, name):
                raise SigningError(
                    "passport_mismatch", f"the passport's {name} is not the one of the profile"
                )
        if found.expires_at <= now:
            raise SigningError("passport_expired", "the passport has expired")
        return found

    def _make(
        self, profiles: Profiles, route: RouteProfile, now: int, jti: str
    ) -> _CachedPassport:
        coordinates, key = profiles.coordinates, self.identity.key
        if coordinates.key_id is None or not is_key_id(coordinates.key_id):
            raise SigningError("key_id_missing", "the profile names no key_id")
        if coordinates.key_binding != "software":
            raise SigningError("passport_required", "a broker's passport is needed for this profile")
        claims = {
            "iss": coordinates.issuer,
            "sub": coordinates.subject,
            "trust_domain": coordinates.trust_domain,
            "aud": route.audience,
            "iat": now,
            "exp": now + _PASSPORT_SECONDS,
            "key_binding": coordinates.key_binding,
            "cnf": {"jwk": key.public_jwk},
            "jti": jti,
        }
        passport = parse_passport(make_passport(key, coordinates.key_id, claims))
        if passport is None:
            raise SigningError("credentials_too_large", "the passport is longer than 8 KiB")
        return _cached(passport)


def _cached(passport: Passport) -> _CachedPassport:
    sha256 = sha256_base64url(passport.jws.encode("ascii"))
    return _CachedPassport(
        passport.jws, sha256, passport.key_id, passport.issued_at, passport.expires_at
    )
