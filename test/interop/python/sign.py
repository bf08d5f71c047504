"""Signs one request, as docs/design/protocol.md says: a job as JSON on standard input, the headers as JSON on standard output.

Needs Python 3.9 and nothing else. The job is described in ../README.md.
"""

import base64
import hashlib
import json
import re
import secrets
import sys
import time

import ed25519

DEFAULT_PORTS = {"http": ":80", "https": ":443"}
BODY_METHODS = ("POST", "PUT", "PATCH")
PASSPORT_SECONDS = 300
PROOF_SECONDS = 60


class JobError(Exception):
    """The job cannot be signed; the text says why."""


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sha256(data):
    return base64url(hashlib.sha256(data).digest())


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def read_private_key(path):
    """The 32 bytes of an Ed25519 key in PEM, PKCS#8: the last of its DER form."""
    with open(path, encoding="ascii") as file:
        lines = file.read().split("\n")
    der = base64.b64decode("".join(line for line in lines if not line.startswith("-----")))
    if len(der) != 48:
        raise JobError(f"{path}: not an Ed25519 private key in PKCS#8")
    return der[-32:]


def jwk_of(secret):
    return {"kty": "OKP", "crv": "Ed25519", "x": base64url(ed25519.public_key(secret))}


def make_passport(passport, audience, holder, now):
    """A compact JWS, and its key ID, issuer and subject."""
    issued_at = passport.get("issued_at", now)
    claims = {
        "iss": passport["issuer"],
        "sub": passport["subject"],
        "trust_domain": passport["trust_domain"],
        "aud": audience,
        "iat": issued_at,
        "exp": passport.get("expires_at", issued_at + PASSPORT_SECONDS),
        "nbf": passport.get("not_before"),
        "key_binding": passport["key_binding"],
        "cnf": {"jwk": jwk_of(holder)},
        "jti": passport.get("jti") or base64url(secrets.token_bytes(16)),
        "provenance": passport.get("provenance"),
        "context": passport.get("context"),
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    header = {"typ": "proofgate-passport+jwt", "alg": "Ed25519", "kid": passport["key_id"]}
    signing_input = f"{base64url(compact(header))}.{base64url(compact(claims))}"
    signature = ed25519.sign(read_private_key(passport["key_file"]), signing_input.encode("ascii"))
    return f"{signing_input}.{base64url(signature)}", passport["key_id"], claims


def read_passport(jws):
    header, claims, _ = jws.split(".")
    return jws, json.loads(from_base64url(header))["kid"], json.loads(from_base64url(claims))


def split_url(url):
    """Scheme, authority and target as they are signed."""
    match = re.fullmatch(r"(?i:(https?))://([^/?#]*)([^#]*)(?:#.*)?", url)
    if match is None:
        raise JobError("not an http or https URL")
    scheme = match[1].lower()
    authority = match[2].rpartition("@")[2]
    host, port = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:[0-9]*)?", authority).groups("")
    host = re.sub("[A-Z]", lambda letter: letter[0].lower(), host)
    if host.endswith("."):
        host = host[:-1]
    if port in (":", DEFAULT_PORTS[scheme]):
        port = ""
    target = match[3] if match[3].startswith("/") else f"/{match[3]}"
    if re.fullmatch(r"[!-~]+", host + target) is None:
        raise JobError("the URL holds bytes that must be escaped, or a host that must be an A-label")
    return scheme, host + port, target


def signed_headers(names, headers):
    """Name and value of each signed header, in order."""
    found = []
    for name in sorted(set(name.lower() for name in names)):
        values = [value.strip(" \t") for key, value in headers if key.lower() == name]
        if len(values) != 1 or re.fullmatch(r"[ -~]+", values[0]) is None:
            raise JobError(f"{name} is not in the request once, with a value that can be signed")
        found.append((name, values[0]))
    return found


def content_sha256(route, method, body):
    if route["body"] == "unbound":
        return "-"
    return sha256(body) if body or method in BODY_METHODS else "-"


def sign(job):
    now = int(time.time())
    holder = read_private_key(job["holder_key_file"])
    route, request = job["route"], job["request"]
    if "jws" in job["passport"]:
        jws, key_id, claims = read_passport(job["passport"]["jws"])
    else:
        jws, key_id, claims = make_passport(job["passport"], route["audience"], holder, now)
    scheme, authority, target = split_url(request["url"])
    headers = signed_headers(route["signed_headers"] + job["also_signed"], request["headers"])
    issued_at = job.get("issued_at", now)
    lines = [
        ("auth-site", job["auth_site"]),
        ("key-id", key_id),
        ("passport-sha256", sha256(jws.encode("ascii"))),
        ("issuer", claims["iss"]),
        ("subject", claims["sub"]),
        ("audience", claims["aud"]),
        ("route-id", route["route_id"]),
        ("method", request["method"]),
        ("scheme", scheme),
        ("authority", authority),
        ("target", target),
        ("jti", job.get("jti") or base64url(secrets.token_bytes(16))),
        ("issued-at", issued_at),
        ("expires-at", job.get("expires_at", issued_at + PROOF_SECONDS)),
        ("content-sha256", content_sha256(route, request["method"], base64.b64decode(request["body_base64"]))),
        ("headers", ",".join(name for name, _ in headers) or "-"),
    ]
    lines += [(f"header.{name}", value) for name, value in headers]
    transcript = "transcript-v1\n" + "".join(f"{name}={value}\n" for name, value in lines)
    signature = ed25519.sign(holder, transcript.encode("ascii"))
    return {
        "authority": authority,
        "target": target,
        "transcript": transcript,
        "headers": {
            **({"X-Proofgate-Passport": jws} if "passport_header" in route else {"Authorization": f"Passport {jws}"}),
            "X-Proofgate-Transcript": base64url(transcript.encode("ascii")),
            "X-Proofgate-Signature": base64url(signature),
        },
    }


def main():
    try:
        print(json.dumps(sign(json.load(sys.stdin))))
    except (JobError, OSError) as error:
        sys.exit(f"sign: {error}")


if __name__ == "__main__":
    main()
