"""Gets a passport from a broker, as docs/broker.md says: a job as JSON on standard input, the broker's answer on standard output.

Needs Python 3.9 and the package `cryptography`. The job is described in ../README.md.
"""

import base64
import hashlib
import http.client
import json
import ssl
import sys
import urllib.parse

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils


class BrokerError(Exception):
    """The broker refused; the text is its code."""


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def sha256(data):
    return base64url(hashlib.sha256(data).digest())


def read_key(path):
    with open(path, "rb") as file:
        return serialization.load_pem_private_key(file.read(), password=None)


def jwk_of(key):
    """The public half, as protocol.md writes keys."""
    public = key.public_key()
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return {"kty": "OKP", "crv": "Ed25519", "x": base64url(public.public_bytes_raw())}
    numbers = public.public_numbers()
    x, y = (base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def thumbprint(jwk):
    """RFC 7638: members in alphabetical order, no white space."""
    return sha256(json.dumps(jwk, sort_keys=True, separators=(",", ":")).encode("ascii"))


def sign(key, text):
    """Ed25519, ES256 or ES384 as r || s, or PS256 with a salt of 32 bytes."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return base64url(key.sign(text))
    if isinstance(key, rsa.RSAPrivateKey):
        return base64url(key.sign(text, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256()))
    digest, size = (hashes.SHA384(), 48) if key.curve.key_size == 384 else (hashes.SHA256(), 32)
    r, s = utils.decode_dss_signature(key.sign(text, ec.ECDSA(digest)))
    return base64url(r.to_bytes(size, "big") + s.to_bytes(size, "big"))


def signed_text(broker_url, challenge, credential, holder_thumbprint, audience):
    lines = [
        "proofgate-broker-v1",
        "operation=passport",
        f"broker-url={broker_url}",
        f"challenge={challenge}",
        f"credential-sha256={sha256(credential)}",
        f"holder-thumbprint={holder_thumbprint}",
        f"audience={audience}",
    ]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def prove(job, challenge):
    """The proof member of the request."""
    holder = read_key(job["holder_key_file"])
    holder_jwk = jwk_of(holder)

    def text_over(credential):
        return signed_text(job["broker_url"], challenge, credential, thumbprint(holder_jwk), job["audience"])

    proof = {"kind": job["kind"], "challenge": challenge, "holder_jwk": holder_jwk}
    if job["kind"] == "signed_form":
        with open(job["svid_file"], "rb") as file:
            chain = x509.load_pem_x509_certificates(file.read())
        ders = [certificate.public_bytes(serialization.Encoding.DER) for certificate in chain]
        text = text_over(ders[0])
        proof["certificates"] = [base64.b64encode(der).decode("ascii") for der in ders]
        proof["svid_signature"] = sign(read_key(job["svid_key_file"]), text)
    else:
        registered = read_key(job["registered_key_file"])
        registered_jwk = jwk_of(registered)
        text = text_over(thumbprint(registered_jwk).encode("ascii"))
        proof["registered_jwk"] = registered_jwk
        proof["registered_signature"] = sign(registered, text)
    proof["holder_signature"] = sign(holder, text)
    return proof


def post(job, path, body):
    address = urllib.parse.urlsplit(job["broker_url"])
    context = ssl.create_default_context(cafile=job["ca_file"])
    connection = http.client.HTTPSConnection(address.hostname, address.port, timeout=10, context=context)
    try:
        if body is None:
            connection.request("POST", path)
        else:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, body=json.dumps(body).encode("utf-8"), headers=headers)
        response = connection.getresponse()
        answer = json.load(response)
    finally:
        connection.close()
    if response.status != 200:
        raise BrokerError(answer["code"])
    return answer


def main():
    job = json.load(sys.stdin)
    try:
        challenge = post(job, "/v1/challenges", None)["challenge"]
        request = {"audience": job["audience"], "proof": prove(job, challenge)}
        print(json.dumps(post(job, "/v1/passports", request)))
    except (BrokerError, OSError) as error:
        sys.exit(f"get_passport: {error}")


if __name__ == "__main__":
    main()
