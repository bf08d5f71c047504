"""An enrolled key in a temporary folder, and a server that records what arrives."""

import base64
import contextlib
import datetime
import functools
import hashlib
import ipaddress
import json
import os
import re
import socket
import socketserver
import ssl
import tempfile
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from proofgate._keys import SigningKey, encode_base64url


# Of the newest key with this key ID.
PUBLIC_KEYS = {}


def write_private(path, text):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def profile(origin, **changes):
    return {
        "route_id": "orders",
        "method": "GET",
        "path_template": "/v1/{path*}",
        "audience": "https://api.shop.example",
        "origins": [origin],
        "signed_headers": [],
        "body": "bound",
        **changes,
    }


def profiles(origin):
    """One for each method, and one route whose body is not bound."""
    methods = ("GET", "POST", "PUT", "DELETE", "QUERY")
    return [
        *(profile(origin, method=method, route_id=f"orders-{method}") for method in methods),
        profile(
            origin, route_id="own", path_template="/v1/own", passport_header="X-Proofgate-Passport"
        ),
        profile(origin, method="POST", route_id="uploads", path_template="/v1/uploads", body="unbound"),
    ]


def write_enrolled(folder, signing_profiles, key_id="dk_1", **derived):
    """A key as `proofgate enroll` leaves it; returns the path of the key file and the key."""
    key = Ed25519PrivateKey.generate()
    PUBLIC_KEYS[key_id] = key.public_key()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
    state = {
        "format": "proofgate.enrollment-state/v1",
        "key_thumbprint": SigningKey(key).thumbprint,
        "control_url": "https://control.shop.example",
        "policy": "epr_1",
        "enrolled": {
            "control_url": "https://control.shop.example",
            "policy": "epr_1",
            "enrollment_id": "e_1",
            "auth_site": "shop-eu",
            "created_at": "2026-01-01T00:00:00Z",
            "derived_key": {
                "key_id": key_id,
                "fingerprint": SigningKey(key).thumbprint,
                "status": "active",
                "expires_at": "2099-01-01T00:00:00Z",
                "client_id": "billing",
                "issuer": "https://control.shop.example/sites/shop-eu",
                "trust_domain": "shop.example",
                "subject": "client:billing",
                "key_binding": "software",
                **derived,
            },
            "signing_profiles": signing_profiles,
        },
    }
    key_file = os.path.join(folder, "key.pem")
    write_private(key_file, pem)
    write_private(f"{key_file}.enrollment.json", json.dumps(state))
    return key_file, key


def install_pair(folder, number, signing_profiles):
    """Installs a key and its state as `proofgate agent` does; returns the path of the key file."""
    pair = f".key.pem.{number}"
    os.mkdir(os.path.join(folder, pair))
    write_enrolled(os.path.join(folder, pair), signing_profiles, key_id=f"dk_{number}")
    link = os.path.join(folder, ".new")
    os.symlink(pair, link)
    os.replace(link, os.path.join(folder, ".key.pem.current"))
    for name in ("key.pem", "key.pem.enrollment.json"):
        with contextlib.suppress(FileExistsError):
            os.symlink(f".key.pem.current/{name}", os.path.join(folder, name))
    return os.path.join(folder, "key.pem")


class Arrived:
    """A request as the server got it."""

    def __init__(self, method, scheme, target, headers, body):
        self.method = method
        self.scheme = scheme
        self.target = target
        self.headers = headers
        self.body = body

    @functools.cached_property
    def transcript(self):
        """Lines of the transcript; of an HTTP message or DPoP proof that verifies, the same lines as far as it says them."""
        if "dpop" in self.headers:
            return self._dpop()
        text = self.headers.get("x-proofgate-transcript")
        if text is None:
            return self._http_message()
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
        return dict(line.split("=", 1) for line in data.split("\n")[1:-1])

    def _http_message(self):
        if self.headers.get("signature-input") is None:
            return None
        params = self._only("signature-input")[len("sig=") :]
        names = re.findall('"([^"]+)"', params.partition(")")[0])
        derived = {"@method": self.method, "@target-uri": f"{self.scheme}://{self.headers['host']}{self.target}"}
        lines = [(name, derived[name] if name in derived else self._only(name)) for name in names]
        base = "".join(f'"{name}": {value}\n' for name, value in lines) + f'"@signature-params": {params}'
        stated = dict(re.findall(r';([a-z]+)="?([^";]+)', params))
        signature = base64.b64decode(self._only("signature")[len("sig=:") : -1])
        PUBLIC_KEYS[stated["keyid"]].verify(signature, base.encode("ascii"))
        assert {*derived} <= {*names} and ("content-type" in names) == (
            "content-digest" in names and "content-type" in self.headers
        )
        digest = dict(lines).get("content-digest", "")[len("sha-256=:") : -1]
        return {
            "jti": stated["nonce"],
            "key-id": stated["keyid"],
            "method": self.method,
            "target": self.target,
            "authority": self.headers["host"],
            "content-sha256": encode_base64url(base64.b64decode(digest)) or "-",
            "route-id": "uploads" if self.target == "/v1/uploads" else "other",
        }

    def _dpop(self):
        signing_input, _, signature = self._only("dpop").rpartition(".")
        token = self._only("authorization")[len("DPoP ") :]
        key_id = _decoded(token.split(".")[0])["kid"]
        PUBLIC_KEYS[key_id].verify(_bytes(signature), signing_input.encode("ascii"))
        claims = _decoded(signing_input.split(".")[1])
        assert claims["ath"] == encode_base64url(hashlib.sha256(token.encode("ascii")).digest())
        url = f"{self.scheme}://{self.headers['host']}{self.target.partition('?')[0]}"
        # It covers neither query nor body.
        return {
            "jti": claims["jti"],
            "key-id": key_id,
            "method": claims["htm"],
            "target": self.target if claims["htu"] == url else claims["htu"],
            "authority": self.headers["host"],
            "content-sha256": "-",
            "route-id": "uploads",
        }

    def _only(self, name):
        [value] = self.headers.get_all(name)
        return value

    @property
    def fits(self):
        """Whether the proof is for this request."""
        lines = self.transcript
        if lines is None:
            return False
        digest = encode_base64url(hashlib.sha256(self.body).digest())
        is_bound = self.body or self.method in ("POST", "PUT", "PATCH") or "content-digest" in self.headers
        content = digest if is_bound else "-"
        return (
            lines["method"] == self.method
            and lines["target"] == self.target
            and lines["authority"] == self.headers["host"]
            and (lines["content-sha256"] == content or lines["route-id"] == "uploads")
        )


def _bytes(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _decoded(part):
    return json.loads(_bytes(part))


DENIED = json.dumps(
    {"reason": "invalid_request_proof", "detail": "authorization_missing", "decision_id": "d_1"}
)


class Server:
    """Answers with `answer(arrived)`: a status, headers and a body, or None to close the connection. Requests that do not fit get a denial."""

    def __init__(self, tls_folder=None):
        self.arrived = []
        self.answer = lambda arrived: (200, {}, "ok")
        self.clock_offset = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def respond(self):
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                scheme = server.origin.partition(":")[0]
                arrived = Arrived(self.command, scheme, self.path, self.headers, body)
                server.arrived.append(arrived)
                answer = server.answer(arrived)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, text = answer
                if not arrived.fits and arrived.target.startswith("/v1/"):
                    status, text = 401, DENIED
                    headers = {"X-Proofgate-Reason": "invalid_request_proof"}
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode("ascii"))

            do_GET = do_POST = do_PUT = do_DELETE = do_QUERY = respond

            def date_time_string(self, timestamp=None):
                return formatdate(time.time() + server.clock_offset, usegmt=True)

            def log_message(self, *_):
                pass

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Listener(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.ca_file = None if tls_folder is None else self._serve_tls(tls_folder)
        self.origin = f"{'http' if tls_folder is None else 'https'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _serve_tls(self, folder):
        """With a certificate for 127.0.0.1 that signs itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        now = datetime.datetime.now(datetime.timezone.utc)
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).add_extension(address, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        day = datetime.timedelta(days=1)
        certificate = builder.not_valid_before(now - day).not_valid_after(now + day).sign(key, hashes.SHA256())
        pem = serialization.Encoding.PEM
        files = os.path.join(folder, "tls.crt"), os.path.join(folder, "tls.key")
        pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        for file, data in zip(files, (certificate.public_bytes(pem), key.private_bytes(pem, pkcs8, plain))):
            with open(file, "wb") as out:
                out.write(data)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        return files[0]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Tunnel:
    """A proxy that answers CONNECT, for one server."""

    def __init__(self, server):
        self.opened = 0
        tunnel = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                while b"\r\n\r\n" not in self.request.recv(65536):
                    pass
                tunnel.opened += 1
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                with socket.create_connection(("127.0.0.1", server.port)) as other:
                    back = threading.Thread(target=self.pump, args=(other, self.request), daemon=True)
                    back.start()
                    self.pump(self.request, other)

            @staticmethod
            def pump(source, target):
                with contextlib.suppress(OSError):
                    while True:
                        data = source.recv(65536)
                        if not data:
                            return
                        target.sendall(data)

        class Listener(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self._server = Listener(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def temporary_folder():
    with tempfile.TemporaryDirectory() as folder:
        yield folder
