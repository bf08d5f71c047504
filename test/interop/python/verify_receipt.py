"""Verifies a revocation receipt offline, written from docs/operate/control.md alone ("Revocation receipts").

Usage: verify_receipt.py RECEIPT_KEY.jwk.json < receipt
Prints "effective TIME", "pending", or "invalid: why", and ends with 0, 3 or 1. Needs the package cryptography.
"""
import base64
import hashlib
import json
import re
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TYPE = "proofgate-revocation-receipt+jws"
FORMAT = "proofgate.revocation-receipt/v1"
MAX_SKEW = 60


class Invalid(Exception):
    pass


def decode(text):
    """base64url without padding; each value has one spelling."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise Invalid("malformed")
    try:
        value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise Invalid("malformed") from None
    if base64.urlsafe_b64encode(value).rstrip(b"=").decode() != text:
        raise Invalid("malformed")
    return value


def members(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Invalid("malformed")
    return found


def parse(data):
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=members)
    except ValueError:
        raise Invalid("malformed") from None
    if not isinstance(value, dict):
        raise Invalid("malformed")
    return value


def thumbprint(jwk):
    """RFC 7638."""
    text = json.dumps({"crv": jwk["crv"], "kty": jwk["kty"], "x": jwk["x"]}, separators=(",", ":"), sort_keys=True)
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def end_of_use(bound):
    realtime = min(bound["realtime_until"], bound["fresh_as_of"] + bound["realtime_staleness_seconds"])
    stale = max(bound["bounded_until"], realtime, bound["unlimited_until"])
    return min(bound["expires_until"], stale) + bound["skew_seconds"] + 1


def verify(text, jwk):
    parts = text.split(".")
    if len(parts) != 3:
        raise Invalid("malformed")
    header = parse(decode(parts[0]))
    if set(header) != {"typ", "alg", "kid"}:
        raise Invalid("malformed")
    if header["typ"] != TYPE or header["alg"] != "Ed25519":
        raise Invalid("type")
    if header["kid"] != thumbprint(jwk):
        raise Invalid("key")
    try:
        key = Ed25519PublicKey.from_public_bytes(decode(jwk["x"]))
        key.verify(decode(parts[2]), (parts[0] + "." + parts[1]).encode("ascii"))
    except InvalidSignature:
        raise Invalid("signature") from None
    receipt = parse(decode(parts[1]))
    if receipt.get("format") != FORMAT:
        raise Invalid("malformed")
    ends = [receipt["key_expires_at"] + MAX_SKEW + 1]
    if "bound" in receipt:
        ends.append(end_of_use(receipt["bound"]))
    if receipt.get("no_use_from", min(ends)) != min(ends):
        raise Invalid("inconsistent")
    if receipt["state"] == "effective":
        if "no_use_from" not in receipt or receipt["issued_at"] < min(ends):
            raise Invalid("inconsistent")
    elif receipt["state"] != "pending":
        raise Invalid("inconsistent")
    return receipt


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        jwk = json.load(file)
    try:
        receipt = verify(sys.stdin.read().strip(), jwk)
    except Invalid as why:
        print(f"invalid: {why}")
        return 1
    if receipt["state"] == "pending":
        print("pending")
        return 3
    print(f"effective {receipt['no_use_from']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
