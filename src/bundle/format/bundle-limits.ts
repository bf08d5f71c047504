/**
 * Limits and defaults of a bundle's content. Separate from `schema.ts`, so that programs that only validate need not
 * load the schema builder. Source: docs/design/bundle.md "Content".
 */
export const BUNDLE_FORMAT = 'proofgate.bundle/v1';
/** Maximum number of derived keys in the bundle itself; more go to shards. */
export const MAX_INLINE_DERIVED_KEYS = 10_000;
export const MAX_KEYS_PER_SHARD = 50_000;
export const DEFAULT_PASSPORT_TTL_SECONDS = 300;
export const MAX_PASSPORT_TTL_SECONDS = 3600;
/** A year: longer than any bundle lives. */
export const MAX_STALENESS_LIMIT_SECONDS = 31_536_000;
/** Maximum time from a bundle's `issued_at`, and from a verifier's start, to the end of an observation. */
export const MAX_OBSERVATION_SECONDS = 30 * 24 * 3600;
export const MAX_ROUTES = 50_000;
export const MAX_CLIENTS = 100_000;
/** Maximum number of grants of one client. */
export const MAX_GRANTS = 10_000;
export const MAX_ISSUERS = 1000;
export const MAX_BLOCKED = 10_000;

/**
 * Paths and limits of distribution. Separate from `distribution-contract.ts`, so that a target need not load the schema
 * builder.
 * Source: docs/design/bundle.md "Distribution".
 */

export const POLL_PATH = '/v1/targets/self/bundle';
export const ACK_PATH = '/v1/targets/self/acks';
/**
 * Request header in which a target names the optional members of a bundle that it knows, separated by commas. A target
 * rejects a bundle with a member that it does not know. A header, because released versions of Control reject unknown
 * query parameters and members, and ignore unknown headers.
 */
export const MEMBERS_HEADER = 'proofgate-bundle-members';
/**
 * Members that some released verifiers do not know. `enforcement` stands for all members of an observation, `accepted_proofs` for
 * itself with the formats that came with it.
 */
export const OPTIONAL_MEMBERS = ['accepted_proofs', 'blocked', 'enforcement', 'passport_header'] as const;
/**
 * Request header in which a target says what it enforces although the bundle says observe; absent when there is nothing. A
 * header for the same reason as {@link MEMBERS_HEADER}. Its value: `enforced-observations.ts`.
 */
export const ENFORCED_HEADER = 'proofgate-enforced-observations';
/** Request header in which a verifier says which instance of its target it is. Its value: `instance-report.ts`. */
export const INSTANCE_HEADER = 'proofgate-instance';
/** Request header with an instance's signature of its acknowledgement. Its value: `acknowledgement-signature.ts`. */
export const ACK_SIGNATURE_HEADER = 'proofgate-acknowledgement-signature';
/** Maximum time that Control holds a poll. */
export const MAX_WAIT_SECONDS = 30;
/** Maximum number of steps in one response; a target that is further behind polls again at once. */
export const MAX_STEPS = 1000;

/** Highest revision that an operator may set as a site's floor; leaves eight times as many above it. */
export const MAX_FLOOR_REVISION = 999_999_999_999_999;
