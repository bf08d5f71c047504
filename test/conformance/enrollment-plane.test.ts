/**
 * Compares every name and number of the specification's enrollment plane with the code: resources and their fields, states,
 * flags with aliases and defaults, error strings, limits. The tests of each part cover behavior.
 * Source: specification "Resources and their fields", "States and transitions", "Command-line tool", "Errors", "Limits".
 */

import { describe, expect, it } from '@jest/globals';
import { BUNDLE_CONTENT } from '../../src/bundle/format/schema.ts';
import { ENROLL_SETTINGS } from '../../src/caller/enroll/enroll-settings.ts';
import { SIGNING_SETTINGS } from '../../src/cli/signing/signing-inputs.ts';
import { DERIVED_KEY, SIGNING_PROFILE } from '../../src/control/contract/derived-keys-contract.ts';
import { ENROLLED_KEY, WORKLOAD_READINESS } from '../../src/control/contract/enrollment-contract.ts';
import { ENROLLMENT_POLICY, SOURCE, SOURCE_REVISION } from '../../src/control/contract/sources-contract.ts';
import {
  APPROVALS,
  KEY_STATES,
  MAX_KEY_LIFETIME_SECONDS,
  MIN_KEY_LIFETIME_SECONDS,
  SOURCE_KINDS,
  SOURCE_STATES,
} from '../../src/control/contract/vocabulary.ts';
import { KEY_MACHINE, keyExpirySeconds } from '../../src/control/domain/enrollment-rules.ts';
import { holdsSlot, SOURCE_MACHINE } from '../../src/control/domain/source-states.ts';
import type { Setting } from '../../src/process/settings/settings.ts';
import { READINESS_CONDITIONS } from '../../src/protocol/readiness-conditions.ts';
import { REASONS } from '../../src/protocol/reasons.ts';
import { runInProcess } from '../support/cli/in-process.ts';

interface Shape {
  readonly properties: object;
}

const fieldsOf = ({ properties }: Shape) => Object.keys(properties);

describe('fields', () => {
  const NAMED: readonly (readonly [string, Shape, readonly string[]])[] = [
    ['Trust Anchor Source', SOURCE, ['kind', 'display_name']],
    [
      'Trust Anchor Source revision',
      SOURCE_REVISION,
      ['issuer', 'jwks_uri', 'audience', 'revision', 'fingerprint', 'detected_scope', 'state'],
    ],
    [
      'Enrollment policy',
      ENROLLMENT_POLICY,
      [
        ...['source_id', 'source_revision', 'client_id', 'approval', 'max_key_lifetime_seconds'],
        ...['verified_subject', 'verified_issuer', 'reference'],
      ],
    ],
    ['Derived key', DERIVED_KEY, ['key_id', 'fingerprint', 'status', 'expires_at']],
    ['Derived key, as the workload has it', ENROLLED_KEY, ['key_id', 'fingerprint', 'status', 'expires_at']],
    ['Signing profile', SIGNING_PROFILE, ['route_id', 'method', 'audience', 'path_template', 'origins']],
    [
      'Route policy',
      BUNDLE_CONTENT.properties.routes.items,
      ['route_id', 'method', 'path_template', 'audience', 'freshness_class', 'max_staleness_seconds'],
    ],
    ['Route source set', BUNDLE_CONTENT.properties.route_sources.items, ['route_id', 'allowed_sources']],
    [
      'Allowed source',
      BUNDLE_CONTENT.properties.route_sources.items.properties.allowed_sources.items,
      ['issuer', 'trust_domain', 'subject_exact', 'subject_prefix', 'required_key_binding'],
    ],
  ];
  it.each(NAMED)('%s', (_resource, shape, fields) => {
    expect(fieldsOf(shape)).toEqual(expect.arrayContaining([...fields]));
  });

  it('no resource that leaves Control names a private key', () => {
    for (const [, shape] of NAMED) expect(JSON.stringify(shape)).not.toMatch(/private/i);
  });
});

describe('states', () => {
  it('of a Trust Anchor Source', () => {
    for (const state of [
      ...['draft', 'failed_draft', 'validated', 'activating', 'active'],
      ...['publishing', 'suspended', 'retired'],
    ]) {
      expect(SOURCE_STATES).toContain(state);
    }
  });

  it('only active and activating sources, and what lies between and behind them, take a slot', () => {
    expect(SOURCE_STATES.filter(holdsSlot)).toEqual(['activating', 'publishing', 'active', 'suspended']);
  });

  const ROWS = [
    ['draft', 'validation_passed', 'validated'],
    ['draft', 'validation_failed', 'failed_draft'],
    ['failed_draft', 'validation_passed', 'validated'],
    ['failed_draft', 'validation_failed', 'failed_draft'],
    ['failed_draft', 'delete', 'removed'],
    ['validated', 'activate', 'activating'],
    ['active', 'suspend', 'suspended'],
    ['active', 'retire', 'retired'],
  ] as const;
  it.each(ROWS)('a source that is %s, on %s, is %s', (state, event, next) => {
    expect(SOURCE_MACHINE.table[state][event]).toBe(next);
  });

  it('of a derived key', () => {
    expect(KEY_STATES).toEqual(['active', 'revoked', 'expired']);
    expect(KEY_MACHINE.table.active).toEqual({ revoke: 'revoked', expire: 'expired' });
    expect(KEY_MACHINE.final).toEqual(['revoked', 'expired']);
  });

  it('readiness has five conditions', () => {
    expect(READINESS_CONDITIONS).toEqual([
      ...['derived_key', 'route_grant', 'signing_profile', 'target_acknowledged', 'version_current'],
    ]);
    expect(JSON.stringify(WORKLOAD_READINESS)).toContain('version_current');
  });

  it('approval is automatic or manual', () => expect(APPROVALS).toEqual(['automatic', 'manual']));
});

describe('proofgate enroll', () => {
  const settings: readonly Setting<unknown>[] = Object.values(ENROLL_SETTINGS);
  const setting = (flag: string) => settings.find((each) => each.flag === flag);

  const FLAGS = [
    ...['control-url', 'policy', 'provider', 'private-key-file', 'private-key-out', 'proof-file'],
    ...['kubernetes-token-file', 'wait-for-activation', 'timeout', 'poll-interval', 'submit-retries'],
    ...['refresh-skew', 'force-reenroll'],
  ];
  it.each(FLAGS)('has --%s', (flag) => expect(setting(flag)).toBeDefined());

  it('has no flag by which a workload chooses its key’s expiry', () => {
    expect(settings.map(({ flag }) => flag).filter((flag) => /expir|lifetime|ttl/.test(flag))).toEqual([]);
  });

  it('calls --policy --enrollment-policy too', () => {
    expect(setting('policy')?.aliases).toEqual(['enrollment-policy']);
  });

  const DEFAULTS: readonly (readonly [string, unknown])[] = [
    ['provider', 'oidc_jwks'],
    ['wait-for-activation', true],
    ['timeout', 300_000],
    ['submit-retries', 2],
    ['refresh-skew', 300_000],
    ['force-reenroll', false],
  ];
  it.each(DEFAULTS)('--%s is %s when it is not given', (flag, value) => {
    expect(setting(flag)?.absent).toEqual({ kind: 'value', value });
  });

  it('takes at most 5 submit retries', () => {
    expect(setting('submit-retries')?.read(['5'])).toBe(5);
    expect(() => setting('submit-retries')?.read(['6'])).toThrow(
      expect.objectContaining({ code: 'out_of_range' }),
    );
  });

  it('looks for the token where Kubernetes projects it', () => {
    expect(setting('kubernetes-token-file')?.description).toContain(
      '/var/run/secrets/kubernetes.io/serviceaccount/token',
    );
  });

  const TARGET = ['--control-url', 'https://control.example', '--policy', 'epr_x'];
  const ERRORS: readonly (readonly [string, readonly string[]])[] = [
    [
      'control_url_and_policy_required',
      ['--control-url', 'https://control.example', '--private-key-out', 'k'],
    ],
    ['set_exactly_one_private_key_file_or_out', TARGET],
    [
      'set_exactly_one_private_key_file_or_out',
      [...TARGET, '--private-key-out', 'k', '--private-key-file', 'k'],
    ],
    [
      'invalid_enroll_timing',
      [...TARGET, '--private-key-out', 'k', '--timeout', '1s', '--poll-interval', '2s'],
    ],
    ['unsupported_enrollment_provider', [...TARGET, '--private-key-out', 'k', '--provider', 'saml']],
  ];
  it.each(ERRORS)('says %s, in one line', async (code, args) => {
    const { exitCode, stderr } = await runInProcess(['enroll', ...args]);
    expect([exitCode, stderr.startsWith(`error: ${code}: `), stderr.split('\n').length]).toEqual([
      2,
      true,
      2,
    ]);
  });
});

describe('limits', () => {
  it('a key ends with its token or its policy’s lifetime, whichever is earlier', () => {
    const at = (tokenExpiresAtSeconds: number, maxKeyLifetimeSeconds: number) =>
      keyExpirySeconds({ tokenExpiresAtSeconds, acceptedAtSeconds: 1000, maxKeyLifetimeSeconds });
    expect(at(4600, 60)).toBe(1060);
    expect(at(1030, 60)).toBe(1030);
    expect([MIN_KEY_LIFETIME_SECONDS, MAX_KEY_LIFETIME_SECONDS]).toEqual([60, 86_400]);
  });

  it('--ttl bounds a request, never a key: at most five minutes', () => {
    const { ttlMs } = SIGNING_SETTINGS;
    expect(ttlMs.absent).toEqual({ kind: 'value', value: 60_000 });
    expect(ttlMs.read(['5m'])).toBe(300_000);
    expect(() => ttlMs.read(['5m1s'])).toThrow(expect.objectContaining({ code: 'out_of_range' }));
  });

  it('one source kind', () => expect(SOURCE_KINDS).toEqual(['oidc_jwks']));
});

describe('denial reasons', () => {
  const NAMED = [
    ...[
      'bundle_route_missing',
      'bundle_policy_missing',
      'stale_bundle_fail_closed',
      'bundle_freshness_unknown',
    ],
    ...['source_issuer_mismatch', 'source_trust_domain_mismatch', 'source_subject_mismatch'],
    ...['insufficient_key_binding', 'missing_provenance', 'provenance_mismatch', 'missing_context'],
    ...['context_mismatch', 'invalid_request_proof', 'request_binding_mismatch', 'jti_replay'],
  ];
  it.each(NAMED)('%s', (reason) => expect(REASONS).toContain(reason));
});
