"""Repetitions of requests by `urllib3.Retry`, each with a proof of its own."""

from __future__ import annotations

from typing import Any, Dict

import requests.adapters


class _SigningPool:
    """Of urllib3, which calls `urlopen` again for each attempt, also through a proxy with CONNECT."""

    def urlopen(self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> Any:
        if hasattr(headers, "signed_anew"):
            headers = headers.signed_anew()
        return super().urlopen(method, url, body, headers, **options)  # type: ignore[misc]


class RetryAdapter(requests.adapters.HTTPAdapter):
    """An adapter of requests for `max_retries=urllib3.Retry(...)`: each attempt has a proof of its own.

    Mount it where `Auth` signs. Requests that are not signed are repeated as they are.
    """

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        _sign_attempts_of(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        _sign_attempts_of(manager)
        return manager


def _sign_attempts_of(manager: Any) -> None:
    classes: Dict[str, Any] = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _signing(pool) for scheme, pool in classes.items()}


def _signing(pool: Any) -> Any:
    """A SOCKS proxy has pools of its own, so each is extended and none replaced."""
    return pool if issubclass(pool, _SigningPool) else type(f"Signing{pool.__name__}", (_SigningPool, pool), {})
