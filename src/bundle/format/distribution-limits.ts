/**
 * Paths and limits of distribution. Separate from `distribution-contract.ts`, so that a target need not load the schema
 * builder.
 * Source: docs/bundle.md "Distribution".
 */
export const POLL_PATH = '/v1/targets/self/bundle';
export const ACK_PATH = '/v1/targets/self/acks';
/** Maximum time that Control holds a poll. */
export const MAX_WAIT_SECONDS = 30;
/** Maximum number of steps in one response; a target that is further behind polls again at once. */
export const MAX_STEPS = 1000;

/** Highest revision that an operator may set as a site's floor; leaves eight times as many above it. */
export const MAX_FLOOR_REVISION = 999_999_999_999_999;
