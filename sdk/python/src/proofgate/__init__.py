"""Signs requests to APIs behind Proofgate. See https://pypi.org/project/proofgate/."""

from ._signer import SignedRequest, Signer
from ._transcript import BodyDigest
from .errors import Denied, ProofgateError, SigningError

__version__ = "0.3.0"
__all__ = [
    "BodyDigest",
    "Denied",
    "ProofgateError",
    "SignedRequest",
    "Signer",
    "SigningError",
]
