/**
 * Where a target asks Control, and how much it is told at once. Apart from `distribution-contract.ts`, so that a target needs no
 * library to know them. Source: docs/bundle.md "Distribution".
 */
export const POLL_PATH = '/v1/targets/self/bundle';
export const ACK_PATH = '/v1/targets/self/acks';
/** Longest that Control holds a poll back. */
export const MAX_WAIT_SECONDS = 30;
/** Most steps in one answer; a target that is further behind asks again at once. */
export const MAX_STEPS = 1000;

/** Highest revision that an operator may have a site published above; leaves eight times as many above it. */
export const MAX_FLOOR_REVISION = 999_999_999_999_999;
