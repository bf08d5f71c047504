/**
 * Data about the authorization requests of each proxy. docs/operate/forward-auth.md has the measured facts;
 * test/e2e/forward-auth/ measures them.
 */

export const HTTP_PROFILE_NAMES = ['envoy', 'nginx', 'traefik', 'caddy'] as const;
export type HttpProfileName = (typeof HTTP_PROFILE_NAMES)[number];

/** nginx sends this header: the secret, the method and `$request_uri`, separated by single spaces. */
export const NGINX_REQUEST_HEADER = 'x-proofgate-request';

/** envoy/http-service.yaml sets this header for the check. */
export const ENVOY_LENGTH_HEADER = 'x-proofgate-content-length';

/** Path of the authorization request, also the `path_prefix` of Envoy. */
export const CHECK_PATH = '/check';

/** What the path of a check says of the proxy's configuration. */
export interface CheckPath {
  /** Whether it replaces `Signature`, `Signature-Input` and `DPoP` by those of the answer. If not, only transcripts are accepted. */
  readonly replacesProofs: boolean;
  /** Whether this location forwards bodies to the API although `--http-body removed` is set, so that bodies are unknown. */
  readonly isStreamed: boolean;
}

export const CHECK_PATHS: ReadonlyMap<string, CheckPath> = new Map([
  [CHECK_PATH, { replacesProofs: false, isStreamed: false }],
  ['/check/streamed', { replacesProofs: false, isStreamed: true }],
  ['/check/all-proofs', { replacesProofs: true, isStreamed: false }],
  ['/check/all-proofs/streamed', { replacesProofs: true, isStreamed: true }],
]);

/**
 * The operator's setting about bodies (`--http-body`). `unknown`: nothing is known about bodies. `removed`: the proxy
 * forwards no bodies to the API. `forwarded`: the proxy sends each body with its authorization request.
 */
export const HTTP_BODY_MODES = ['unknown', 'removed', 'forwarded'] as const;
export type HttpBodyMode = (typeof HTTP_BODY_MODES)[number];

/** Location of the original method and target. */
export type RequestSource =
  /** The request line of the authorization request; its target begins with the prefix. */
  | { readonly kind: 'request_line'; readonly pathPrefix: string }
  /** One header for each, which must occur exactly once. */
  | { readonly kind: 'headers'; readonly method: string; readonly target: string }
  /** One header with the secret, which must occur exactly once. */
  | { readonly kind: 'secret_header'; readonly name: string };

/** Headers of a check that describe the request's body. */
export interface BodyMarks {
  /** `false` on a whole body, `true` on the beginning of one, absent without a body or where the proxy did not buffer it. */
  readonly partial: string;
  /** `length=` and the client's Content-Length, which may be missing. */
  readonly announced: string;
}

export interface HttpProfile {
  readonly source: RequestSource;
  /** Whether the proxy joins repeated lines of some headers with commas. */
  readonly joinsHeaders: boolean;
  /** How the proxy marks bodies; undefined when it sends every body without a mark. */
  readonly bodyMarks: BodyMarks | undefined;
  /** Whether names with other characters than letters, digits and `-` are refused, which the API might read as another name. */
  readonly refusesUnusualNames: boolean;
  /** Our headers that the proxy itself sends; a client's copy is replaced. */
  readonly ownHeaders: readonly string[];
  /** Values of `--http-body` that the proxy supports. */
  readonly bodyModes: readonly HttpBodyMode[];
  /** Whether the proxy removes the headers that the response header `x-envoy-auth-headers-to-remove` names. */
  readonly removesHeaders: boolean;
  /** Status for denials that have 503 with other proxies. */
  readonly unavailableStatus: number;
}

const FORWARDED: RequestSource = {
  kind: 'headers',
  method: 'x-forwarded-method',
  target: 'x-forwarded-uri',
};

const PLAIN = {
  joinsHeaders: false,
  refusesUnusualNames: false,
  bodyMarks: undefined,
  ownHeaders: [],
  removesHeaders: false,
  unavailableStatus: 503,
} as const;

export const HTTP_PROFILES: { readonly [P in HttpProfileName]: HttpProfile } = {
  envoy: {
    source: { kind: 'request_line', pathPrefix: CHECK_PATH },
    joinsHeaders: true,
    bodyMarks: { partial: 'x-envoy-auth-partial-body', announced: ENVOY_LENGTH_HEADER },
    refusesUnusualNames: false,
    ownHeaders: [ENVOY_LENGTH_HEADER],
    bodyModes: ['unknown', 'forwarded'],
    removesHeaders: true,
    // Envoy treats every 5xx as a failed check and drops the answer. envoy/http-service.yaml turns 429 into 503 for the
    // caller.
    unavailableStatus: 429,
  },
  nginx: {
    source: { kind: 'secret_header', name: NGINX_REQUEST_HEADER },
    bodyModes: ['unknown', 'removed'],
    ...PLAIN,
    refusesUnusualNames: true,
    ownHeaders: [NGINX_REQUEST_HEADER],
  },
  traefik: { source: FORWARDED, bodyModes: ['unknown', 'forwarded'], ...PLAIN },
  caddy: { source: FORWARDED, bodyModes: ['unknown', 'removed'], ...PLAIN },
};
