"""Gets a passport from a broker, as docs/operate/broker.md says: a job as JSON on standard input, the broker's answer on standard output.

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
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

TIMEOUT = 10
LARGEST_ANSWER = 1 << 20


class Refused(Exception):
    """The broker refused; the text is its code."""


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def sha256(data):
    return base64url(hashlib.sha256(data).digest())


# Keys


def public_jwk(key):
    """Ed25519 or P-256, with exactly the members of docs/design/protocol.md, "Keys and signatures"."""
    public = key.public_key()
    if isinstance(public, ed25519.Ed25519PublicKey):
        return {"kty": "OKP", "crv": "Ed25519", "x": base64url(public.public_bytes_raw())}
    if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1):
        numbers = public.public_numbers()
        x, y = (base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}
    raise SystemExit("A holder key or registered key is Ed25519 or P-256.")


def thumbprint(jwk):
    return sha256(json.dumps(jwk, sort_keys=True, separators=(",", ":")).encode("ascii"))


def sign(key, data):
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return base64url(key.sign(data))
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in ("secp256r1", "secp384r1"):
        digest, size = (hashes.SHA256(), 32) if key.curve.name == "secp256r1" else (hashes.SHA384(), 48)
        r, s = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
        return base64url(r.to_bytes(size, "big") + s.to_bytes(size, "big"))
    if isinstance(key, rsa.RSAPrivateKey):
        return base64url(key.sign(data, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256()))
    raise SystemExit("The SVID's key is of a kind that the broker does not accept.")


# HTTP


class Broker:
    """Named in every signature by `url`, its --public-url. With an SVID, that is the client certificate."""

    def __init__(self, url, ca_file, svid_file=None, svid_key_file=None):
        self.url = url.rstrip("/")
        self.tls = ssl.create_default_context(cafile=ca_file)
        if svid_file:
            self.tls.load_cert_chain(svid_file, svid_key_file)

    def post(self, path, value=None):
        """A new connection each time: a resumed session proves nothing."""
        address = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPSConnection(
            address.hostname, address.port or 443, timeout=TIMEOUT, context=self.tls
        )
        body = None if value is None else json.dumps(value).encode("utf-8")
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            connection.request("POST", address.path + path, body, headers)
            answer = connection.getresponse()
            content = answer.read(LARGEST_ANSWER)
        finally:
            connection.close()
        parsed = json.loads(content)
        if answer.status != 200:
            raise Refused(parsed["code"])
        return parsed

    def challenge(self):
        return self.post("/v1/challenges")["challenge"]

    def passport(self, audience, proof):
        return self.post("/v1/passports", {"audience": audience, "proof": proof})


# Proofs


def signed_text(broker, challenge, credential, holder, audience):
    lines = (
        "proofgate-broker-v1",
        "operation=passport",
        f"broker-url={broker.url}",
        f"challenge={challenge}",
        f"credential-sha256={sha256(credential)}",
        f"holder-thumbprint={holder}",
        f"audience={audience}",
    )
    return "".join(line + "\n" for line in lines).encode("ascii")


def by_software_key(broker, audience, registered, fresh=None):
    challenge = broker.challenge()
    registered_jwk = public_jwk(registered)
    holder_jwk = public_jwk(fresh or registered)
    text = signed_text(broker, challenge, thumbprint(registered_jwk).encode("ascii"), thumbprint(holder_jwk), audience)
    proof = {
        "kind": "software_key",
        "challenge": challenge,
        "registered_jwk": registered_jwk,
        "registered_signature": sign(registered, text),
    }
    if fresh:
        proof.update(holder_jwk=holder_jwk, holder_signature=sign(fresh, text))
    return broker.passport(audience, proof), holder_jwk


def by_mtls(broker, audience, svid_key):
    return broker.passport(audience, {"kind": "mtls"}), public_jwk(svid_key)


def by_signed_form(broker, audience, certificates, svid_key, holder):
    challenge = broker.challenge()
    der = [certificate.public_bytes(serialization.Encoding.DER) for certificate in certificates]
    holder_jwk = public_jwk(holder)
    text = signed_text(broker, challenge, der[0], thumbprint(holder_jwk), audience)
    proof = {
        "kind": "signed_form",
        "challenge": challenge,
        "certificates": [base64.b64encode(each).decode("ascii") for each in der],
        "holder_jwk": holder_jwk,
        "svid_signature": sign(svid_key, text),
        "holder_signature": sign(holder, text),
    }
    return broker.passport(audience, proof), holder_jwk


def by_jwt_svid(broker, audience, token, holder):
    """The token's only audience names broker and holder key: the workload makes the key before it asks for the token."""
    challenge = broker.challenge()
    holder_jwk = public_jwk(holder)
    text = signed_text(broker, challenge, token.encode("ascii"), thumbprint(holder_jwk), audience)
    proof = {
        "kind": "jwt_svid",
        "challenge": challenge,
        "token": token,
        "holder_jwk": holder_jwk,
        "holder_signature": sign(holder, text),
    }
    return broker.passport(audience, proof), holder_jwk


def claims_of(passport):
    part = passport.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def checked(answer, holder_jwk, audience):
    """The passport is for the key that we hold, and for our audience."""
    claims = claims_of(answer["passport"])
    if answer["holder_thumbprint"] != thumbprint(holder_jwk) or claims["cnf"]["jwk"] != holder_jwk:
        raise SystemExit("The passport is for another holder key.")
    if claims["aud"] != audience or claims["sub"] != answer["subject"]:
        raise SystemExit("The passport says something else than the answer.")
    return answer


# The job


def read(path):
    with open(path, "rb") as file:
        return file.read()


def private_key(path):
    return serialization.load_pem_private_key(read(path), None)


def passport_for(job):
    """The answer, and the public key that the passport must name."""
    audience = job["audience"]
    if job["kind"] == "mtls":
        broker = Broker(job["broker_url"], job["ca_file"], job["svid_file"], job["svid_key_file"])
        return by_mtls(broker, audience, private_key(job["svid_key_file"]))
    broker = Broker(job["broker_url"], job["ca_file"])
    holder = private_key(job["holder_key_file"]) if "holder_key_file" in job else None
    if job["kind"] == "software_key":
        return by_software_key(broker, audience, private_key(job["registered_key_file"]), holder)
    if job["kind"] == "signed_form":
        certificates = x509.load_pem_x509_certificates(read(job["svid_file"]))
        return by_signed_form(broker, audience, certificates, private_key(job["svid_key_file"]), holder)
    return by_jwt_svid(broker, audience, read(job["token_file"]).decode("ascii"), holder)


def main():
    job = json.load(sys.stdin)
    try:
        answer, holder_jwk = passport_for(job)
    except (Refused, OSError) as error:
        sys.exit(f"get_passport: {error}")
    print(json.dumps(checked(answer, holder_jwk, job["audience"])))


if __name__ == "__main__":
    main()
