"""Makes and reads passports, which identify the caller (docs/design/protocol.md "Passport")."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from ._keys import SigningKey, thumbprint_of
from ._syntax import (
    decode_base64url,
    encode_base64url,
    is_base64url_of_32_bytes,
    is_identifier,
    is_key_binding,
    is_key_id,
    is_subject,
    parse_strict_json,
)

_TYPE = "proofgate-passport+jwt"
_MAX_BYTES = 8192
_MAX_ATTRIBUTES = 32
_MAX_SECONDS = 2**53 - 1
_REQUIRED = {"iss", "sub", "trust_domain", "aud", "iat", "exp", "key_binding", "cnf", "jti"}
_OPTIONAL = {"nbf", "provenance", "context"}


@dataclass(frozen=True)
class Passport:
    """A passport whose signature is not verified: only the verifier knows the issuer's key."""

    jws: str = field(repr=False)
    key_id: str
    issuer: str
    subject: str
    trust_domain: str
    audience: str
    key_binding: str
    holder_thumbprint: str
    issued_at: int
    expires_at: int


def make_passport(key: SigningKey, key_id: str, claims: Dict[str, Any]) -> str:
    """A compact JWS, signed by the key itself."""
    header = {"typ": _TYPE, "alg": key.algorithm, "kid": key_id}
    signing_input = f"{encode_json(header)}.{encode_json(claims)}"
    return f"{signing_input}.{encode_base64url(key.sign(signing_input.encode('ascii')))}"


def encode_json(value: Dict[str, Any]) -> str:
    return encode_base64url(json.dumps(value, separators=(",", ":")).encode("ascii"))


def parse_passport(jws: str) -> Optional[Passport]:
    """None for anything that a verifier would call malformed."""
    parts = jws.split(".")
    if len(jws) > _MAX_BYTES or len(parts) != 3:
        return None
    header, claims = _object(parts[0]), _object(parts[1])
    signature = decode_base64url(parts[2])
    if header is None or claims is None or signature is None or len(signature) != 64:
        return None
    if set(header) != {"typ", "alg", "kid"} or header["typ"] != _TYPE:
        return None
    if header["alg"] not in ("Ed25519", "ES256") or not is_key_id(header["kid"]):
        return None
    return _with_claims(jws, header["kid"], claims)


def _object(part: str) -> Optional[Dict[str, Any]]:
    data = decode_base64url(part)
    try:
        value = parse_strict_json((data or b"").decode("ascii"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _with_claims(jws: str, key_id: str, claims: Dict[str, Any]) -> Optional[Passport]:
    if not _REQUIRED <= set(claims) <= _REQUIRED | _OPTIONAL:
        return None
    texts = [claims[name] for name in ("iss", "sub", "trust_domain", "aud", "jti")]
    times = [claims[name] for name in ("iat", "exp", "nbf") if name in claims]
    holder = _holder_jwk(claims["cnf"])
    if not all(map(is_identifier, texts)) or not all(map(_is_seconds, times)) or holder is None:
        return None
    if not is_subject(claims["sub"]) or not is_key_binding(claims["key_binding"]):
        return None
    if not all(_is_attributes(claims.get(name, {})) for name in ("provenance", "context")):
        return None
    return Passport(
        jws=jws,
        key_id=key_id,
        issuer=claims["iss"],
        subject=claims["sub"],
        trust_domain=claims["trust_domain"],
        audience=claims["aud"],
        key_binding=claims["key_binding"],
        holder_thumbprint=thumbprint_of(holder),
        issued_at=claims["iat"],
        expires_at=claims["exp"],
    )


def _is_seconds(value: object) -> bool:
    return type(value) is int and 0 < value <= _MAX_SECONDS


def _is_attributes(value: object) -> bool:
    if not isinstance(value, dict) or len(value) > _MAX_ATTRIBUTES:
        return False
    return all(is_identifier(name) and is_identifier(text) for name, text in value.items())


def _holder_jwk(confirmation: object) -> Optional[Dict[str, str]]:
    if not isinstance(confirmation, dict) or set(confirmation) != {"jwk"}:
        return None
    jwk = confirmation["jwk"]
    if not isinstance(jwk, dict):
        return None
    for kty, crv, coordinates in (("OKP", "Ed25519", ["x"]), ("EC", "P-256", ["x", "y"])):
        if jwk.get("kty") == kty and jwk.get("crv") == crv:
            is_key = set(jwk) == {"kty", "crv", *coordinates} and all(
                is_base64url_of_32_bytes(jwk[name]) for name in coordinates
            )
            return jwk if is_key else None
    return None
