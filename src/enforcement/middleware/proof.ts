/** The result of a verification for handlers. */
import type { KeyBinding } from '../../protocol/identifiers.ts';
import type { ProofFormat } from '../../protocol/proof-format.ts';

/** Facts about an allowed request and its caller, all verified. */
export interface Proof {
  readonly subject: string;
  readonly issuer: string;
  readonly trustDomain: string;
  readonly keyId: string;
  readonly keyBinding: KeyBinding;
  /** Set when the key is one that Control enrolled. */
  readonly clientId: string | undefined;
  readonly routeId: string;
  readonly authSite: string;
  /** UUID; the audit event has it too. */
  readonly decisionId: string;
  /** The format of the caller's proof. */
  readonly format: ProofFormat;
  readonly bundleRevision: number;
  /** Provenance of the workload, by attribute. */
  readonly provenance: ProofAttributes;
  /** Context for which the caller acts, by attribute. */
  readonly context: ProofAttributes;
}

/** Why a request on an observed route would be denied. Its handler runs without a proof: docs/operate/observe.md. */
export interface Observed {
  /** The reason of the denial, such as `invalid_request_proof`. */
  readonly reason: string;
  readonly detail: string | undefined;
  /** Undefined for a request that no route matches. */
  readonly routeId: string | undefined;
  /** UUID; the audit event has it too. */
  readonly decisionId: string;
}

/** Values by attribute. JSON shows them as an object. */
export interface ProofAttributes extends ReadonlyMap<string, string> {
  toJSON(): { readonly [attribute: string]: string };
}

/** A copy: the original belongs to the bundle and to other requests. */
export class CopiedAttributes extends Map<string, string> implements ProofAttributes {
  toJSON(): { readonly [attribute: string]: string } {
    return Object.fromEntries(this);
  }
}
