/** The formats in which a route may accept proofs. Source: docs/design/bundle.md "Content". */

export const PROOF_FORMATS = ['transcript-v1', 'http-message-signatures'] as const;
export type ProofFormat = (typeof PROOF_FORMATS)[number];

/** Those in which our signers sign. */
export const SIGNER_FORMATS = [
  'transcript-v1',
  'http-message-signatures',
] as const satisfies readonly ProofFormat[];
export type SignerFormat = (typeof SIGNER_FORMATS)[number];
