/** The fake Control's record of an enrollment, and its answers. */
import type { PublicKey } from '../../../src/protocol/public-key.ts';
import { isJsonObject, type JsonObject } from '../../../src/protocol/strict-json.ts';

export const AUTH_SITE = 'shop-eu-1';

export interface FakeEnrollment {
  readonly enrollmentId: string;
  readonly challengeId: string;
  readonly key: PublicKey;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  state: 'pending_approval' | 'issued' | 'denied' | 'expired';
  denialCode: string | undefined;
  keyId: string | undefined;
  keyStatus: 'active' | 'revoked' | 'expired';
}

export interface Answer {
  readonly status: number;
  readonly body: object;
  readonly retryAfter?: number | string;
}

/** A refusal, as problem+json (RFC 9457). */
export class Problem extends Error {
  readonly answer: Answer;

  constructor(status: number, code: string) {
    super(code);
    const body = { type: `urn:proofgate:problem:${code}`, title: code, status, code };
    this.answer = { status, body };
  }
}

export function readObject(body: Buffer): JsonObject {
  const value: unknown = JSON.parse(body.toString());
  if (!isJsonObject(value)) throw new Problem(400, 'request_malformed');
  return value;
}

export function text(value: unknown): string {
  if (typeof value !== 'string') throw new Problem(400, 'request_malformed');
  return value;
}

export function profile(members: object = {}): object {
  return {
    name: 'orders-read',
    route_id: 'orders-read',
    method: 'GET',
    path_template: '/v1/orders/{order_id}',
    audience: 'https://api.shop.example',
    origins: ['https://api.shop.example', 'http://api.shop.example'],
    signed_headers: [],
    body: 'bound',
    ...members,
  };
}

/** Body of a submission's answer and of a poll's. */
export function describe(enrollment: FakeEnrollment, profiles: readonly object[]): object {
  const { enrollmentId, state, denialCode, keyId, key } = enrollment;
  const derivedKey = {
    key_id: keyId,
    fingerprint: key.thumbprint,
    status: enrollment.keyStatus,
    expires_at: new Date(enrollment.expiresAtMs).toISOString(),
    client_id: 'billing',
    issuer: 'https://control.shop.example/sites/shop-eu-1',
    trust_domain: 'shop.example',
    subject: 'client:billing',
    key_binding: 'software',
  };
  return {
    enrollment_id: enrollmentId,
    auth_site: AUTH_SITE,
    state,
    created_at: new Date(enrollment.createdAtMs).toISOString(),
    ...(denialCode === undefined ? {} : { denial_code: denialCode }),
    ...(state === 'issued' ? { derived_key: derivedKey, signing_profiles: profiles } : {}),
  };
}
