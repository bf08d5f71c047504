/** Limits that signers, verifiers and bundles share. Source: docs/protocol.md "Request headers", "Passport", "Transcript". */

/** Maximum bytes of each credential as it stands in its header, checked before anything is parsed. */
export const MAX_PASSPORT_BYTES = 8192;
export const MAX_TRANSCRIPT_BYTES = 8192;
export const MAX_SIGNATURE_BYTES = 128;

/** Maximum entries of `provenance` and of `context`. */
export const MAX_ATTRIBUTES = 32;

/** Maximum lifetime of a proof, `expires-at - issued-at`, in seconds. */
export const MAX_PROOF_TTL_SECONDS = 300;
/** Maximum lifetime of a passport that a derived key signed for itself; for a broker's, its bundle entry says. */
export const DERIVED_KEY_PASSPORT_TTL_SECONDS = 300;

/** A site's `skew_seconds`: how far clocks may be apart. */
export const DEFAULT_SKEW_SECONDS = 5;
export const MAX_SKEW_SECONDS = 60;
