import { describe, expect, it } from '@jest/globals';
import { deny, isDenial, REASONS, STATUS_OF_REASON } from '../../src/protocol/reasons.ts';

/** The specification's "Denial reasons (adapter)", with docs/design/protocol.md's status for each. */
const SPECIFIED = {
  bundle_route_missing: 403,
  bundle_policy_missing: 503,
  stale_bundle_fail_closed: 503,
  bundle_freshness_unknown: 503,
  source_issuer_mismatch: 403,
  source_trust_domain_mismatch: 403,
  source_subject_mismatch: 403,
  insufficient_key_binding: 403,
  missing_provenance: 403,
  provenance_mismatch: 403,
  missing_context: 403,
  context_mismatch: 403,
  invalid_request_proof: 401,
  request_binding_mismatch: 403,
  jti_replay: 403,
};
/** Ours: for what the specification has no reason. */
const ADDED = { replay_store_unavailable: 503, verifier_unavailable: 503 };

describe('reasons', () => {
  it('are those of the specification and two more, each with its status', () => {
    expect(STATUS_OF_REASON).toEqual({ ...SPECIFIED, ...ADDED });
    expect([...REASONS].sort()).toEqual(Object.keys({ ...SPECIFIED, ...ADDED }).sort());
  });

  it('become denials with reason, detail and status', () => {
    expect(deny('jti_replay')).toEqual({
      kind: 'denied',
      reason: 'jti_replay',
      detail: undefined,
      status: 403,
    });
    expect(deny('invalid_request_proof', 'key_unknown')).toEqual({
      kind: 'denied',
      reason: 'invalid_request_proof',
      detail: 'key_unknown',
      status: 401,
    });
  });

  it('give a missing Authorization 401 and a wrong audience 403', () => {
    expect(deny('invalid_request_proof', 'authorization_missing').status).toBe(401);
    expect(deny('invalid_request_proof', 'audience').status).toBe(403);
    expect(deny('request_binding_mismatch', 'audience').status).toBe(403);
  });

  it('leave 403 for the audience to its own reason', () => {
    // The name comes from the bundle and may be any text.
    expect(deny('missing_context', 'audience').status).toBe(403);
    expect(deny('verifier_unavailable', 'internal').status).toBe(503);
  });

  it('are closed, and so are their details: this compiles only because each line is an error', () => {
    const neverCalled = () => [
      // @ts-expect-error no such reason
      deny('bundle_missing'),
      // @ts-expect-error no such detail
      deny('invalid_request_proof', 'passport_bad'),
      // @ts-expect-error a detail is required
      deny('invalid_request_proof'),
      // @ts-expect-error it takes none
      deny('jti_replay', 'store'),
      // @ts-expect-error no such line of a transcript
      deny('request_binding_mismatch', 'jti'),
    ];
    expect(neverCalled).toBeInstanceOf(Function);
  });

  it('are distinguished from other results by their kind', () => {
    expect(isDenial(deny('jti_replay'))).toBe(true);
    expect([{}, { kind: 'verified' }, { reason: 'jti_replay' }].map(isDenial)).toEqual([false, false, false]);
  });
});
