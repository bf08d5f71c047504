/** The formats in which a route may accept proofs. Source: docs/design/bundle.md "Content". */

export const PROOF_FORMATS = ['transcript-v1', 'http-message-signatures', 'dpop'] as const;
export type ProofFormat = (typeof PROOF_FORMATS)[number];

/**
 * What a DPoP proof does not bind. A route that accepts such proofs lists what it gives up: always {@link NEVER_BOUND}, and
 * what else its requests may have.
 */
export const UNBOUND_PARTS = ['route', 'site', 'query', 'body', 'headers'] as const;
export type UnboundPart = (typeof UNBOUND_PARTS)[number];
export const NEVER_BOUND: readonly UnboundPart[] = ['route', 'site'];
