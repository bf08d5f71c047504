"""What an answer says: the verifier's denial, and whether the clocks agree."""

from __future__ import annotations

import email.utils
import json
import logging
import re
import time
from typing import Any, Dict, Optional

from .errors import Denied, clock_text

_REASON = re.compile(r"[a-z_]{1,64}")
_TEXT = re.compile(r"[\x21-\x7e]{1,512}")
_SECONDS = re.compile(r"[0-9]{1,6}")
# A site's default; `Date` and the network add one second.
_SKEW_SECONDS = 5
_WARN_EVERY_SECONDS = 60

_log = logging.getLogger("proofgate")


def denial_of(response: Any) -> Optional[Denied]:
    """The verifier's denial, from a response of httpx or requests; None when the answer is not one."""
    reason = response.headers.get("x-proofgate-reason", "")
    status = response.status_code
    # 429: a 503 that comes through an Envoy which asks over HTTP (docs/design/protocol.md).
    if status not in (401, 403, 429, 503) or _REASON.fullmatch(reason) is None:
        return None
    problem = _problem_of(response)
    retry_after = response.headers.get("retry-after", "")
    return Denied(
        status,
        reason,
        _text(problem.get("detail")),
        decision_id=_text(problem.get("decision_id")),
        route_id=_text(problem.get("route_id")),
        retry_after_seconds=int(retry_after) if _SECONDS.fullmatch(retry_after) else None,
        clock_ahead_seconds=_clock_ahead_of(response) if reason == "invalid_request_proof" else None,
    )


def _clock_ahead_of(response: Any) -> Optional[int]:
    # Without the time of sending, only a clock that is behind is certain.
    return clock_ahead(response.headers.get("date"), getattr(response, _SENT_AT, float("-inf")))


def raise_for_denial(response: Any) -> None:
    """Raises Denied when the answer is a denial of the verifier."""
    denial = denial_of(response)
    if denial is not None:
        raise denial


def _problem_of(response: Any) -> Dict[str, Any]:
    try:
        problem = json.loads(response.content)
    except (ValueError, RuntimeError):  # not JSON, or a stream that httpx has not read
        return {}
    return problem if isinstance(problem, dict) else {}


def _text(value: object) -> Optional[str]:
    return value if isinstance(value, str) and _TEXT.fullmatch(value) else None


def clock_ahead(date: Optional[str], sent_at: float) -> Optional[int]:
    """Seconds that this clock is ahead of the server's, negative when it is behind; None within the skew."""
    try:
        server = email.utils.parsedate_to_datetime(date or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    # The server read its clock between sending and now, and dropped the fraction.
    ahead = sent_at - server - 1 if server < sent_at else min(time.time() - server, 0)
    return round(ahead) if abs(ahead) > _SKEW_SECONDS else None


_SENT_AT = "_proofgate_sent_at"


class ClockCheck:
    """Warns, at most once a minute, when an answer's `Date` and the local clock differ too much."""

    def __init__(self) -> None:
        self._warned_at = float("-inf")

    def check(self, response: Any, sent_at: float) -> None:
        setattr(response, _SENT_AT, sent_at)
        ahead = clock_ahead(response.headers.get("date"), sent_at)
        if ahead is None or time.monotonic() - self._warned_at < _WARN_EVERY_SECONDS:
            return
        self._warned_at = time.monotonic()
        _log.warning("%s", clock_text(ahead))
