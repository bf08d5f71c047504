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
    """The verifier denied the request: nothing reached the API behind it."""

    def __init__(
        self,
        status: int,
        reason: str,
        detail: Optional[str] = None,
        *,
        decision_id: Optional[str] = None,
        route_id: Optional[str] = None,
        retry_after_seconds: Optional[int] = None,
    ) -> None:
        super().__init__(f"{status} {reason}" + (f"/{detail}" if detail else ""))
        self.status = status
        self.reason = reason
        self.detail = detail
        self.decision_id = decision_id
        self.route_id = route_id
        self.retry_after_seconds = retry_after_seconds
