/** Tests that details are safe as metric labels: they contain nothing that a caller or a bundle can name. */
import { expect, it } from '@jest/globals';
import { type Denial, deny, detailLabel } from '../../src/protocol/reasons.ts';

it.each<[Denial, string]>([
  [deny('invalid_request_proof', 'proof_expired'), 'proof_expired'],
  [deny('stale_bundle_fail_closed', 'stale'), 'stale'],
  [deny('request_binding_mismatch', 'passport-sha256'), 'passport-sha256'],
  [deny('request_binding_mismatch', 'header.x-tenant'), 'header'],
  [deny('jti_replay'), ''],
  [deny('source_subject_mismatch'), ''],
  [deny('missing_provenance', 'image'), ''],
  [deny('context_mismatch', 'team'), ''],
  // An attribute may have the same name as a code.
  [deny('missing_context', 'stale'), ''],
  [{ ...deny('jti_replay'), detail: 'constructor' }, ''],
])('%j', (denial, label) => {
  expect(detailLabel(denial)).toBe(label);
});
