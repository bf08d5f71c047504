"""The auth object of httpx, sync and async, and of requests."""

from __future__ import annotations

import hashlib
import re
import time
from typing import Any, AsyncGenerator, Callable, Generator, Iterable, List, Optional, Tuple
from urllib.parse import urljoin, urlsplit

from ._attempts import (
    method_after,
    refuse_copies,
    signed_for_each_attempt,
    trace_sending,
    trace_sending_async,
)
from ._denial import ClockCheck, denial_of
from ._dpop import nonce_for_gone_body, without_earlier_dpop
from ._http_signature import covers_digest
from ._request_url import normalize_authority
from ._signer import SignedRequest, Signer, is_credential, without_credentials
from ._transcript import Body, BodyDigest, Header
from .errors import SigningError

try:
    import httpx
except ImportError:  # for requests alone
    httpx = None  # type: ignore[assignment]

_MAX_READ_BYTES = 8 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


class Auth(httpx.Auth if httpx else object):  # type: ignore[misc]
    """Signs every request of a client: `httpx.Client(auth=Auth(KEY_FILE))`, or the auth of requests.

    The credentials are never part of a redirect. A redirected request that the verifier denies for
    that is signed anew. A redirect leads only to the origin that redirects, and to a URL that a
    profile fits; anything else raises SigningError. With `follow="profiles"` it may lead to every
    origin of a profile, so that one of these APIs can have a request sent to another.
    """

    def __init__(
        self,
        key_file: Any = None,
        *,
        signer: Optional[Signer] = None,
        follow: str = "same-origin",
        **options: Any,
    ) -> None:
        if (key_file is None) == (signer is None):
            raise TypeError("give key_file or signer")
        if follow not in ("same-origin", "profiles"):
            raise ValueError('follow is "same-origin" or "profiles"')
        self._follow = follow
        self._signer = Signer(key_file, **options) if signer is None else signer
        self._clock = ClockCheck()

    def __repr__(self) -> str:
        return f"<Auth {self._signer!r}>"

    # httpx

    def sync_auth_flow(
        self, request: "httpx.Request"
    ) -> "Generator[httpx.Request, httpx.Response, None]":
        is_repeated = False
        while True:
            if self._wants_body(request):
                request.read()
            url = _url_of(request)
            self._sign_httpx(request)
            trace_sending(request, self._redirect_check(url))
            sent_at = time.time()
            response = yield request
            if self._asks_for_nonce(response) and not is_repeated:
                is_repeated = True
                if not isinstance(request.stream, httpx.ByteStream):
                    raise nonce_for_gone_body()
            elif self._is_unsigned_denial(response, sent_at, url):
                is_repeated = False
            else:
                return
            request = response.request

    async def async_auth_flow(
        self, request: "httpx.Request"
    ) -> "AsyncGenerator[httpx.Request, httpx.Response]":
        is_repeated = False
        while True:
            if self._wants_body(request):
                await request.aread()
            url = _url_of(request)
            self._sign_httpx(request)
            trace_sending_async(request, self._redirect_check(url))
            sent_at = time.time()
            response = yield request
            if self._asks_for_nonce(response) and not is_repeated:
                is_repeated = True
                if not isinstance(request.stream, httpx.ByteStream):
                    raise nonce_for_gone_body()
            elif self._is_unsigned_denial(response, sent_at, url):
                is_repeated = False
            else:
                return
            request = response.request

    def _wants_body(self, request: "httpx.Request") -> bool:
        if not self._signer.binds_body(request.method, _url_of(request)):
            return False
        length = request.headers.get("content-length", "")
        is_short = length.isdecimal() and int(length) <= _MAX_READ_BYTES
        if isinstance(request.stream, httpx.ByteStream) or is_short:
            return True
        raise _not_replayable()

    def _sign_httpx(self, request: "httpx.Request") -> None:
        url = _url_of(request)
        _require_host(url, request.headers.get("host"))
        headers = without_credentials(_texts(request.headers.raw))
        body = request.content if self._signer.binds_body(request.method, url) else None
        signed = self._signer.sign(request.method, url, headers=headers, body=body)
        request.headers = _SignedHeaders(headers, signed)

    def _redirect_check(self, signed_url: str) -> Callable[[Any], None]:
        """Refuses a request of httpcore that is sent without credentials: httpx makes it for a redirect."""

        def check(request: Any) -> None:
            headers = {name.lower(): value for name, value in request.headers}
            if self._signer._proof_header.encode("ascii") in headers:
                return
            target = headers[b"host"] + request.url.target
            url = f"{request.url.scheme.decode('ascii')}://{target.decode('ascii')}"
            self._refuse_redirect(signed_url, request.method.decode("ascii"), url)

        return check

    def _refuse_redirect(self, from_url: str, method: str, url: str) -> None:
        """Raises SigningError for a redirect that must not be followed."""
        if self._follow != "profiles" and _origin_of(from_url) != _origin_of(url):
            raise SigningError(
                "origin_not_allowed",
                'the redirect leads to another origin: follow="profiles" allows those of the key\'s profiles',
            )
        self._signer.binds_body(method, url)

    def _asks_for_nonce(self, response: "httpx.Response") -> bool:
        """Also keeps the nonces of answers that were redirects. Whether the last request is to be repeated for one."""
        for answer in (*response.history, response):
            headers = answer.headers.multi_items()
            asks = self._signer._read_answer(_url_of(answer.request), answer.status_code, headers)
        return asks and isinstance(response.request.headers, _SignedHeaders)

    def _is_unsigned_denial(self, response: "httpx.Response", sent_at: float, signed_url: str) -> bool:
        self._clock.check(response, sent_at)
        request = response.request
        if isinstance(request.headers, _SignedHeaders) or response.status_code != 401:
            return False
        if "x-proofgate-reason" not in response.headers:
            return False
        # Again, for transports that report no events.
        self._refuse_redirect(signed_url, request.method, _url_of(request))
        return True

    # requests

    def __call__(self, request: Any) -> Any:
        self._sign_requests(request)
        sent_at = time.time()

        def on_response(response: Any, **options: Any) -> Any:
            return self._on_response(response, sent_at, options, response.request)

        request.register_hook("response", on_response)
        return request

    def _sign_requests(self, request: Any) -> None:
        parts = urlsplit(request.url)
        url = f"{parts.scheme}://{parts.netloc}{request.path_url}"
        _require_host(url, request.headers.get("host"))
        _remove_credentials(request.headers)
        headers = _texts(request.headers.items())
        body: Body = None
        if self._signer.binds_body(request.method, url):
            body = _replayable_body(request)
        method = request.method

        def credentials() -> Any:
            return self._signer.sign(method, url, headers=headers, body=body).headers

        request.headers = signed_for_each_attempt(request.headers, credentials, self._signer._proof_header)

    def _on_response(
        self, response: Any, sent_at: float, options: Any, copied: Any, is_repeated: bool = False
    ) -> Any:
        """`copied` is the request of which requests makes that of a redirect."""
        self._clock.check(response, sent_at)
        request = response.request
        is_signed = self._signer._proof_header in request.headers
        url = f"{_origin_of(request.url)}{request.path_url}"
        asks = self._signer._read_answer(url, response.status_code, response.headers.items())
        if asks and is_signed and not is_repeated:
            response.close()
            return self._send_again(response, sent_at, options, copied, is_repeated=True)
        if response.is_redirect:
            self._remove_proof(request.headers)
            self._check_redirect(response, copied)
        if is_signed or response.status_code != 401 or denial_of(response) is None:
            return response
        response.close()
        return self._send_again(response, sent_at, options, copied)

    def _send_again(
        self, response: Any, sent_at: float, options: Any, copied: Any, is_repeated: bool = False
    ) -> Any:
        again = response.request.copy()
        if is_repeated:
            self._remove_proof(again.headers)
        if not _is_rewound(again):
            raise nonce_for_gone_body() if is_repeated else _not_replayable()
        self._sign_requests(again)
        answer = response.connection.send(again, **options)
        answer.request = again
        answer.history.append(response)
        return self._on_response(answer, sent_at, options, copied, is_repeated)

    def _remove_proof(self, headers: Any) -> None:
        _remove_credentials(headers)
        if self._signer._proof_header == "dpop":
            own = {name for name, _ in without_earlier_dpop(_texts(headers.items()))}
            for name in [name for name in headers if name not in own]:
                del headers[name]
        if self._signer._proof_header != "signature-input":
            return
        covers = covers_digest(headers.pop("signature-input", ""))
        for name in ("signature", *(["content-digest"] if covers else [])):
            headers.pop(name, None)

    def _check_redirect(self, response: Any, copied: Any) -> None:
        """Lets a redirect fail that must not be followed, when it is followed."""
        url = urljoin(response.url, response.headers["location"]).partition("#")[0]
        parts = urlsplit(url)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        method = method_after(response.status_code, copied.method)
        try:
            self._refuse_redirect(response.url, method, f"{parts.scheme}://{parts.netloc}{target}")
        except SigningError as error:
            refuse_copies(copied, error)


if httpx:

    class _SignedHeaders(httpx.Headers):
        """Headers whose credentials are in `raw` alone, which transports send.

        A copy, such as that for a redirect, does not have them.
        """

        def __init__(self, headers: List[Header], signed: SignedRequest) -> None:
            names = {name.lower() for name, _ in signed.headers}
            super().__init__([(name, value) for name, value in headers if name.lower() not in names])
            self._credentials = [(n.encode("ascii"), v.encode("ascii")) for n, v in signed.headers]

        @property
        def raw(self) -> List[Tuple[bytes, bytes]]:
            return [*super().raw, *self._credentials]


def _origin_of(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{normalize_authority(scheme, re.split('[/?#]', rest)[0])}"


def _url_of(request: "httpx.Request") -> str:
    """The URL with the bytes that httpx sends."""
    url = request.url
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}"


def _require_host(url: str, host: Optional[str]) -> None:
    """A request must go to the host that it is signed for."""
    scheme, _, rest = url.partition("://")
    authority = normalize_authority(scheme, re.split("[/?#]", rest)[0])
    if host is not None and normalize_authority(scheme, host) != authority:
        raise SigningError("host_not_allowed", "the Host header is not the host of the URL")


def _texts(headers: Iterable[Tuple[Any, Any]]) -> List[Header]:
    return [(_text(name), _text(value)) for name, value in headers]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _remove_credentials(headers: Any) -> None:
    for name, value in list(headers.items()):
        if is_credential(_text(name), _text(value)):
            del headers[name]


def _replayable_body(request: Any) -> Body:
    body = request.body
    if isinstance(body, str):
        body = request.body = body.encode("utf-8")
        request.prepare_content_length(body)
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, bytearray):
        return bytes(body)
    try:
        start = getattr(request, "_body_position", None)
        start = body.tell() if not isinstance(start, int) else body.seek(start)
        digest, length = hashlib.sha256(), 0
        for chunk in iter(lambda: body.read(_CHUNK_BYTES), b""):
            digest.update(chunk)
            length += len(chunk)
        body.seek(start)
    except (AttributeError, TypeError, OSError, ValueError):
        raise _not_replayable() from None
    return BodyDigest(digest.digest(), length)


def _is_rewound(request: Any) -> bool:
    """Whether a body that was sent can be sent again. It is read again only for proofs that cover it."""
    body, start = request.body, getattr(request, "_body_position", None)
    if body is None or isinstance(body, (bytes, bytearray, str)):
        return True
    try:
        body.seek(start)
    except (AttributeError, TypeError, OSError, ValueError):
        return False
    return True


def _not_replayable() -> SigningError:
    return SigningError(
        "body_not_replayable",
        "the body is a stream that can be read once, and its hash must be known before it is sent: "
        "pass bytes or a seekable file, or declare `body: unbound` at the route",
    )
