/** Limits that signers, verifiers and bundles share. Source: docs/design/protocol.md "Request headers", "Passport", "Transcript". */

/** Maximum size of each credential in its header, in bytes, checked before parsing. */
export const MAX_PASSPORT_BYTES = 8192;
export const MAX_TRANSCRIPT_BYTES = 8192;
export const MAX_SIGNATURE_BYTES = 128;

/** Maximum TCP port. */
export const MAX_PORT = 65_535;

/** Maximum entries of `provenance` and of `context`. */
export const MAX_ATTRIBUTES = 32;

/** Maximum lifetime of a proof, `expires-at - issued-at`, in seconds. */
export const MAX_PROOF_TTL_SECONDS = 300;
/** Maximum lifetime of a passport that a derived key signed; for a broker's passport, the bundle entry states it. */
export const DERIVED_KEY_PASSPORT_TTL_SECONDS = 300;

/** A site's `skew_seconds`: maximum clock skew. */
export const DEFAULT_SKEW_SECONDS = 5;
export const MAX_SKEW_SECONDS = 60;
