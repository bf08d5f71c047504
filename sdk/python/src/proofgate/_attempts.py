"""Every request that httpx and requests make by themselves: those of redirects, and repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List

from .errors import SigningError

if TYPE_CHECKING:
    import httpx


def trace_sending(request: "httpx.Request", check: Callable[[Any], None]) -> None:
    given = _given_trace(request)

    def trace(name: str, info: Any) -> None:
        if name.endswith(_SENDS_HEADERS):
            check(info["request"])
        if given is not None:
            given(name, info)

    _set_trace(request, trace, given)


def trace_sending_async(request: "httpx.Request", check: Callable[[Any], None]) -> None:
    given = _given_trace(request)

    async def trace(name: str, info: Any) -> None:
        if name.endswith(_SENDS_HEADERS):
            check(info["request"])
        if given is not None:
            await given(name, info)

    _set_trace(request, trace, given)


# Of httpcore, before it writes a request.
_SENDS_HEADERS = ".send_request_headers.started"


def _given_trace(request: "httpx.Request") -> Any:
    """The trace of the application, without ours of an earlier attempt."""
    trace = request.extensions.get("trace")
    return getattr(trace, "given", trace)


def _set_trace(request: "httpx.Request", trace: Any, given: Any) -> None:
    trace.given = given
    request.extensions = {**request.extensions, "trace": trace}


def signed_for_each_attempt(headers: Any, credentials: Callable[[], Any], proof_header: str) -> Any:
    """Headers of requests with credentials. urllib3 copies them for each attempt, and gets new ones from the second on."""
    plain = getattr(headers, "plain", type(headers))
    copies: List[Any] = []

    class Signed(plain):  # type: ignore[misc, valid-type]
        def signed_anew(self) -> Any:
            return signed_for_each_attempt(self, credentials, proof_header)

        def copy(self) -> Any:
            copied = Signed(self.items())
            if proof_header in self:
                copies.append(None)
                if len(copies) > 1:
                    copied.update(credentials())
            return copied

    Signed.plain = plain  # type: ignore[attr-defined]
    signed = Signed(headers.items())
    signed.update(credentials())
    return signed


def method_after(status: int, method: str) -> str:
    """As requests and RFC 9110 section 15.4 have it."""
    becomes_get = method != "HEAD" if status in (302, 303) else status == 301 and method == "POST"
    return "GET" if becomes_get else method


def refuse_copies(request: Any, error: SigningError) -> None:
    """Lets `Session.send` fail for copies of a request of requests: it makes one for a redirect, if it follows that."""
    copy = type(request).copy

    def fail(_: Any) -> Any:
        raise error

    def refused() -> Any:
        copied = copy(request)
        copied.__class__ = type("RefusedRedirect", (type(copied),), {"hooks": property(fail)})
        return copied

    request.copy = refused
