/** What a verified proof says about the caller. The class follows from the proof, never from the request. */

import type { KeyBinding } from '../protocol/identifiers.ts';
import type { PublicKey } from '../protocol/public-key.ts';
import type { CallerProof } from './broker-contract.ts';

export type ProofKind = CallerProof['kind'];

export interface VerifiedCaller {
  readonly proof: ProofKind;
  readonly keyBinding: KeyBinding;
  readonly trustDomain: string;
  readonly subject: string;
  /** The key that the caller proved to have, for the passport's `cnf`. */
  readonly holder: PublicKey;
  /** Hash of the credential, as in the signed text. */
  readonly credentialSha256: string;
  /** RFC 7638 thumbprint of the SVID's or the registered key; undefined for a JWT-SVID. */
  readonly credentialThumbprint: string | undefined;
  /** Infinity for a registered key. */
  readonly credentialEndsMs: number;
  readonly maxPassportTtlSeconds: number;
}
