"""Signs requests to APIs behind Proofgate. See https://pypi.org/project/proofgate/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._denial import denial_of, raise_for_denial
from ._signer import SignedRequest, Signer
from ._transcript import BodyDigest
from .errors import Denied, ProofgateError, SigningError

if TYPE_CHECKING:
    from ._auth import Auth
    from ._retries import RetryAdapter

__version__ = "0.4.0"
__all__ = [
    "Auth",
    "BodyDigest",
    "Denied",
    "ProofgateError",
    "RetryAdapter",
    "SignedRequest",
    "Signer",
    "SigningError",
    "denial_of",
    "raise_for_denial",
]


def __getattr__(name: str) -> Any:
    # Only who uses Auth pays for the import of httpx.
    if name == "Auth":
        from ._auth import Auth

        return Auth
    if name == "RetryAdapter":
        from ._retries import RetryAdapter

        return RetryAdapter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
