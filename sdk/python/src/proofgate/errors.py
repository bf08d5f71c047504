"""Errors with stable codes. Their messages never contain a key, a passport or a proof."""

from __future__ import annotations

from typing import Optional


class ProofgateError(Exception):
    """Base of all errors of this package."""


class SigningError(ProofgateError):
    """The request was not signed and not sent. `code` is stable and the same as in the command line."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Denied(ProofgateError):
    """The verifier denied the request: it did not reach the API behind it.

    `clock_ahead_seconds` says how far this clock is ahead of the server's, negative when it is behind; None where it is
    not the matter.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        detail: Optional[str] = None,
        *,
        decision_id: Optional[str] = None,
        route_id: Optional[str] = None,
        retry_after_seconds: Optional[int] = None,
        clock_ahead_seconds: Optional[int] = None,
    ) -> None:
        text = f"{status} {reason}" + (f"/{detail}" if detail else "")
        if reason == "jti_replay":
            text += _REPEATED
        if clock_ahead_seconds is not None:
            text += f"; {clock_text(clock_ahead_seconds)}"
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.decision_id = decision_id
        self.route_id = route_id
        self.retry_after_seconds = retry_after_seconds
        self.clock_ahead_seconds = clock_ahead_seconds


# Each request is signed anew, so the client did not send this proof twice.
_REPEATED = (
    "; something on the way repeated this request, and an earlier copy may have been executed: "
    "ask the API before you send it again"
)


def clock_text(ahead_seconds: int) -> str:
    side = "ahead of" if ahead_seconds > 0 else "behind"
    return f"this clock is {abs(ahead_seconds)} s {side} the server's; verifiers accept 5 s by default: synchronize it"
