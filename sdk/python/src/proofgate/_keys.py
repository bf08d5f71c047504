"""Private keys: Ed25519 and P-256, from unencrypted PKCS#8 PEM."""

from __future__ import annotations

import hashlib
import json
from typing import Dict, Union

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from ._syntax import encode_base64url
from .errors import SigningError


class SigningKey:
    """A private key with its public JWK. Its repr shows the thumbprint alone."""

    def __init__(self, key: Union[Ed25519PrivateKey, ec.EllipticCurvePrivateKey]) -> None:
        self._key = key
        self.public_jwk = _public_jwk(key)
        self.algorithm = "Ed25519" if isinstance(key, Ed25519PrivateKey) else "ES256"
        self.thumbprint = thumbprint_of(self.public_jwk)

    def sign(self, message: bytes) -> bytes:
        """64 bytes: of RFC 8032, or `r || s` of RFC 7518."""
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key.sign(message)
        r, s = decode_dss_signature(self._key.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def __repr__(self) -> str:
        return f"<SigningKey {self.algorithm} {self.thumbprint}>"


def parse_signing_key(pem: bytes, name: str) -> SigningKey:
    """Raises SigningError `private_key_invalid`, `public_key_where_private_expected`."""
    if b"PUBLIC KEY-----" in pem:
        raise SigningError("public_key_where_private_expected", f"{name} holds a public key")
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    # The library's error is dropped: it could quote the file.
    if isinstance(key, Ed25519PrivateKey):
        return SigningKey(key)
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return SigningKey(key)
    raise SigningError(
        "private_key_invalid", f"{name}: not an unencrypted Ed25519 or P-256 private key in PEM"
    )


def _public_jwk(key: Union[Ed25519PrivateKey, ec.EllipticCurvePrivateKey]) -> Dict[str, str]:
    if isinstance(key, Ed25519PrivateKey):
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return {"kty": "OKP", "crv": "Ed25519", "x": encode_base64url(raw)}
    numbers = key.public_key().public_numbers()
    x, y = (encode_base64url(n.to_bytes(32, "big")) for n in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def thumbprint_of(jwk: Dict[str, str]) -> str:
    """RFC 7638."""
    text = json.dumps(jwk, sort_keys=True, separators=(",", ":"))
    return encode_base64url(hashlib.sha256(text.encode("ascii")).digest())
