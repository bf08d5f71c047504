"""Signing profiles: the identity as which a key signs, and the routes for which it signs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ._request_url import RequestUrl, decode_escapes, is_canonical_origin, is_canonical_target
from ._syntax import (
    is_identifier,
    is_key_binding,
    is_key_id,
    is_method,
    is_signable_header_name,
    is_subject,
)
from .errors import SigningError

_FORMAT = "proofgate.signing-profile/v1"
_FILE_MEMBERS = {
    "format",
    "auth_site",
    "key_id",
    "issuer",
    "trust_domain",
    "subject",
    "key_binding",
    "profiles",
}
_PROFILE_MEMBERS = {
    "name",
    "route_id",
    "method",
    "path_template",
    "audience",
    "origins",
    "signed_headers",
    "body",
    "passport_header",
}
# Where a passport goes beside the application's own Authorization.
PASSPORT_HEADER = "X-Proofgate-Passport"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,63})(\*?)\}")


@dataclass(frozen=True)
class Coordinates:
    """What passports and transcripts say of the key."""

    auth_site: str
    key_id: Optional[str]
    issuer: str
    trust_domain: str
    subject: str
    key_binding: str


@dataclass(frozen=True)
class Segment:
    kind: str  # "literal", "one" or "rest"
    text: str


@dataclass(frozen=True)
class RouteProfile:
    """What a request to one route must sign."""

    name: str
    route_id: str
    method: str
    template: str
    segments: Tuple[Segment, ...]
    audience: str
    origins: Tuple[str, ...]
    signed_headers: Tuple[str, ...]
    body: str  # "bound" or "unbound"
    has_own_authorization: bool  # the passport goes into PASSPORT_HEADER


@dataclass(frozen=True)
class Profiles:
    """One profile file: routes of one Auth Site."""

    coordinates: Coordinates
    routes: Tuple[RouteProfile, ...]


class Reader:
    """Reads an untrusted JSON object member by member; errors name the place of the fault."""

    def __init__(self, value: object, code: str, place: str) -> None:
        self.code = code
        self.place = place
        if not isinstance(value, dict):
            raise self.error("must be an object")
        self.members: Dict[str, Any] = value

    def error(self, problem: str) -> SigningError:
        return SigningError(self.code, f"{self.place}: {problem}")

    def required(self, name: str, accepts: Callable[[object], bool]) -> Any:
        if name not in self.members:
            raise self.error(f"{name} is missing")
        if not accepts(self.members[name]):
            raise self.error(f"{name} is not valid")
        return self.members[name]

    def optional(self, name: str, accepts: Callable[[object], bool], default: Any = None) -> Any:
        return self.required(name, accepts) if name in self.members else default

    def items(self, name: str) -> List["Reader"]:
        values = self.required(name, lambda value: isinstance(value, list))
        return [Reader(v, self.code, f"{self.place}: {name}[{i}]") for i, v in enumerate(values)]

    def texts(self, name: str, accepts: Callable[[Any], bool]) -> Tuple[str, ...]:
        values = self.optional(name, lambda value: isinstance(value, list), [])
        if not all(isinstance(value, str) and accepts(value) for value in values):
            raise self.error(f"{name} is not valid")
        if len(set(values)) != len(values):
            raise self.error(f"{name} has a value twice")
        return tuple(values)

    def only(self, known: Set[str]) -> None:
        for name in self.members:
            if name not in known:
                raise self.error(f"{name} is not a member of this format")


def read_profiles(value: object, place: str) -> Profiles:
    """Raises SigningError `profile_invalid`."""
    root = Reader(value, "profile_invalid", place)
    root.only(_FILE_MEMBERS)
    root.optional("format", lambda value: value == _FORMAT)
    for item in root.items("profiles"):
        item.only(_PROFILE_MEMBERS)
    routes = read_routes(root, "profiles")
    if not routes:
        raise root.error("profiles is empty")
    return Profiles(read_coordinates(root, root.required("auth_site", is_identifier)), routes)


def read_coordinates(reader: Reader, auth_site: str) -> Coordinates:
    return Coordinates(
        auth_site=auth_site,
        key_id=reader.optional("key_id", is_key_id),
        issuer=reader.required("issuer", is_identifier),
        trust_domain=reader.required("trust_domain", is_identifier),
        subject=reader.required("subject", is_subject),
        key_binding=reader.required("key_binding", is_key_binding),
    )


def read_routes(root: Reader, member: str) -> Tuple[RouteProfile, ...]:
    routes = tuple(_read_route(item) for item in root.items(member))
    if len({route.route_id for route in routes}) != len(routes):
        raise root.error(f"{member} has a route_id twice")
    if len({route.name for route in routes}) != len(routes):
        raise root.error(f"{member} has a name twice")
    return routes


def _read_route(item: Reader) -> RouteProfile:
    route_id = item.required("route_id", is_identifier)
    template = item.required("path_template", lambda value: isinstance(value, str))
    segments = _parse_template(template)
    if segments is None:
        raise item.error("path_template is not valid; one reads /v1/orders/{order_id}")
    origins = item.texts("origins", is_canonical_origin)
    if not origins:
        raise item.error("origins is missing or empty")
    has_own_authorization = item.optional("passport_header", lambda v: v == PASSPORT_HEADER) is not None

    def is_signable(name: object) -> bool:
        return is_signable_header_name(name, has_own_authorization)

    return RouteProfile(
        name=item.optional("name", is_identifier, route_id),
        route_id=route_id,
        method=item.required("method", is_method),
        template=template,
        segments=segments,
        audience=item.required("audience", is_identifier),
        origins=origins,
        signed_headers=tuple(sorted(item.texts("signed_headers", is_signable))),
        body=item.optional("body", lambda value: value in ("bound", "unbound"), "bound"),
        has_own_authorization=has_own_authorization,
    )


def _parse_template(template: str) -> Optional[Tuple[Segment, ...]]:
    segments: List[Segment] = []
    for text in template[1:].split("/"):
        match = _PLACEHOLDER.fullmatch(text)
        if match is None and ("{" in text or "}" in text):
            return None
        kind = "literal" if match is None else "rest" if match[2] else "one"
        segments.append(Segment(kind, text if match is None else match[1]))
    names = [segment.text for segment in segments if segment.kind != "literal"]
    example = "/" + "/".join(s.text if s.kind == "literal" else "x" for s in segments)
    is_valid = (
        template.startswith("/")
        and "?" not in template
        and len(set(names)) == len(names)
        and all(segment.kind != "rest" for segment in segments[:-1])
        and is_canonical_target(example)
    )
    return tuple(segments) if is_valid else None


def select_profile(
    files: Sequence[Profiles], method: str, url: RequestUrl, name: Optional[str]
) -> Tuple[Profiles, RouteProfile]:
    """The one profile of all files that fits the request.

    Raises SigningError `profile_not_found`, `profile_ambiguous`, `profile_mismatch`, `origin_not_allowed`.
    """
    fits: List[Tuple[Profiles, RouteProfile]] = []
    misfits: List[SigningError] = []
    for file in files:
        try:
            if name is None:
                fits.append((file, _only_fit(file.routes, method, url)))
            else:
                fits.append((file, _named(file.routes, method, url, name)))
        except SigningError as error:
            misfits.append(error)
    if len(fits) == 1:
        return fits[0]
    if fits:
        sites = ", ".join(file.coordinates.auth_site for file, _ in fits)
        raise SigningError("profile_ambiguous", f"profiles of several sites fit: {sites}")
    if not misfits:
        raise SigningError("profile_not_found", "there is no signing profile for this caller")
    # A wrong origin says more than a missing profile.
    raise min(misfits, key=lambda error: error.code == "profile_not_found")


def _only_fit(routes: Sequence[RouteProfile], method: str, url: RequestUrl) -> RouteProfile:
    fits = [route for route in match_templates(routes, url.path) if route.method == method]
    if not fits:
        raise SigningError("profile_not_found", "no profile fits this method and path")
    allowed = [route for route in fits if url.origin in route.origins]
    if not allowed:
        raise _origin_not_allowed(url, fits)
    if len(allowed) > 1:
        names = ", ".join(route.name for route in allowed)
        raise SigningError("profile_ambiguous", f"several profiles fit, name one of them: {names}")
    return allowed[0]


def _named(
    routes: Sequence[RouteProfile], method: str, url: RequestUrl, name: str
) -> RouteProfile:
    route = next((route for route in routes if route.name == name), None)
    if route is None:
        raise SigningError("profile_not_found", "there is no profile of this name")
    if route.method != method:
        raise SigningError("profile_mismatch", f"the profile {name} is for {route.method} only")
    if not match_templates([route], url.path):
        raise SigningError("profile_mismatch", f"the profile {name} is for {route.template}")
    if url.origin not in route.origins:
        raise _origin_not_allowed(url, [route])
    return route


def _origin_not_allowed(url: RequestUrl, routes: Sequence[RouteProfile]) -> SigningError:
    allowed = ", ".join(origin for route in routes for origin in route.origins)
    return SigningError(
        "origin_not_allowed", f"{url.origin} is not an origin of the profile: {allowed}"
    )


def match_templates(routes: Sequence[RouteProfile], path: str) -> List[RouteProfile]:
    """By the verifier's rule: segment by segment, a literal before a placeholder, without going back."""
    values = path[1:].split("/")
    candidates = list(routes)
    for i, value in enumerate(values):
        here = [(r, r.segments[i]) for r in candidates if i < len(r.segments)]
        literals = [(r, s.text) for r, s in here if s.kind == "literal"]
        exact = [r for r, text in literals if text == value]
        if exact:
            candidates = exact
            continue
        # A value that equals a literal only after decoding could be served as that literal.
        if value == "" or any(_fold(text) == _fold(value) for _, text in literals):
            return []
        ones = [r for r, s in here if s.kind == "one"]
        if not ones:
            return [r for r, s in here if s.kind == "rest"] if "" not in values[i:] else []
        candidates = ones
    return [route for route in candidates if len(route.segments) == len(values)]


def _fold(segment: str) -> str:
    decoded = decode_escapes(segment)
    text = segment if decoded is None else decoded
    return re.sub("[A-Z]+", lambda capitals: capitals[0].lower(), text)
