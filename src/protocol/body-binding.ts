/**
 * How a proof binds the request's body: one rule for signers and verifiers.
 * Source: docs/design/protocol.md "Transcript".
 */
import { hash } from 'node:crypto';
import { NOT_BOUND } from './transcript.ts';

/** The route's setting. */
export type BodyRule = 'bound' | 'unbound';

const BODY_BEARING_METHODS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** Whether the method's body is always bound, even when it is empty. */
export function isBodyBearing(method: string): boolean {
  return BODY_BEARING_METHODS.has(method);
}

/** A body whose bytes are elsewhere. */
export interface BodyDigest {
  /** base64url, of all bytes. */
  readonly sha256: string;
  readonly byteLength: number;
}

/** Whether a proof must bind this body. */
export function isBodyBound(method: string, rule: BodyRule, body: Uint8Array | BodyDigest): boolean {
  return rule === 'bound' && (body.byteLength > 0 || isBodyBearing(method));
}

/** base64url. */
export function sha256OfBody(body: Uint8Array | BodyDigest): string {
  return body instanceof Uint8Array ? hash('sha256', body, 'base64url') : body.sha256;
}

/** The transcript's `content-sha256`: base64url SHA-256 of the body, or `-`. */
export function contentSha256(method: string, rule: BodyRule, body: Uint8Array | BodyDigest): string {
  return isBodyBound(method, rule, body) ? sha256OfBody(body) : NOT_BOUND;
}
