/**
 * How much of what a bundle may hold, and what counts where it says nothing. Apart from `schema.ts`, so that who checks a bundle
 * needs no library to know them. Source: docs/bundle.md "Content".
 */
export const BUNDLE_FORMAT = 'proofgate.bundle/v1';
/** Derived keys that a bundle itself may hold; more of them go to shards. */
export const MAX_INLINE_DERIVED_KEYS = 10_000;
export const MAX_KEYS_PER_SHARD = 50_000;
export const DEFAULT_PASSPORT_TTL_SECONDS = 300;
export const MAX_PASSPORT_TTL_SECONDS = 3600;
/** A year: longer than any bundle lives. */
export const MAX_STALENESS_LIMIT_SECONDS = 31_536_000;
export const MAX_ROUTES = 50_000;
export const MAX_CLIENTS = 100_000;
export const MAX_ISSUERS = 1000;
