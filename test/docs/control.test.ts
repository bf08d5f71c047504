/** Checks that codes, states, events, limits and signed texts in docs/operate/control.md, docs/design/enrollment.md and docs/reference/ match the code. */

import { createHash, createPrivateKey, sign } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import {
  MAX_CLIENTS,
  MAX_KEYS_PER_SHARD,
  MAX_STEPS,
  MAX_WAIT_SECONDS,
} from '../../src/bundle/format/bundle-limits.ts';
import { MAX_BODY_BYTES } from '../../src/control/api/app.ts';
import { MAX_BYTES_IN_FLIGHT } from '../../src/control/api/declaration-space.ts';
import { MAX_PAGE_ITEMS } from '../../src/control/api/pagination.ts';
import { DEFAULT_LIMITS } from '../../src/control/api/rate-limits.ts';
import { MAX_DEFINITION_BYTES } from '../../src/control/api/routes/site-policy-api.ts';
import {
  MAX_DECLARATION_BYTES,
  MAX_POLICIES,
  MAX_SOURCES,
  MAX_TARGETS,
} from '../../src/control/contract/declaration-contract.ts';
import {
  DEFAULT_SOURCE_CAPACITY,
  MAX_KEY_LIFETIME_SECONDS,
  MAX_KEYS_PER_TOKEN,
  MIN_KEY_LIFETIME_SECONDS,
  ROLES,
} from '../../src/control/contract/vocabulary.ts';
import {
  MAX_STEPS as MAX_APPLIED_STEPS,
  MAX_SINGLE_STEPS,
} from '../../src/control/declaration/comparison.ts';
import { PROBLEMS } from '../../src/control/domain/api-problem.ts';
import { AUDITED } from '../../src/control/domain/audit-kinds.ts';
import {
  CHALLENGE_LIFETIME_SECONDS,
  ENROLLMENT_MACHINE,
  KEY_MACHINE,
  POLICY_MACHINE,
} from '../../src/control/domain/enrollment-rules.ts';
import { PERMISSIONS, roleHolds } from '../../src/control/domain/roles.ts';
import { PROFILE_MACHINE, TARGET_MACHINE } from '../../src/control/domain/runtime-states.ts';
import { SOURCE_MACHINE } from '../../src/control/domain/source-states.ts';
import { MAX_KEYS } from '../../src/control/issuers/key-set.ts';
import { DEFAULT_REFRESH_INTERVAL_MS } from '../../src/control/issuers/key-set-cache.ts';
import { MAX_KEY_AGE_MS } from '../../src/control/issuers/source-keys.ts';
import { CLOCK_SKEW_SECONDS, MAX_TOKEN_LIFETIME_SECONDS } from '../../src/control/issuers/token-claims.ts';
import { MAX_TOKEN_BYTES } from '../../src/control/issuers/token-envelope.ts';
import { FETCH_TIMEOUT_MS, MAX_RESPONSE_BYTES } from '../../src/process/outbound-fetch/outbound-fetch.ts';
import { enrollmentText, POLL_SCHEME, POLL_WINDOW_SECONDS, pollText } from '../../src/protocol/enrollment.ts';
import { READINESS_CONDITIONS } from '../../src/protocol/readiness-conditions.ts';
import { codesIn, filesOfCheckout, readText, tableNamed } from '../support/docs/markdown.ts';

const document = readText('docs/operate/control.md');
const reference = readText('docs/reference/control.md');
const rowsOf = (name: string) => tableNamed(reference, name);

it('has every problem code of Control, once, with its status', () => {
  const described = rowsOf('problems').flatMap(([codes, status]) =>
    codesIn(codes).map((code) => `${code} ${status}`),
  );
  const known = Object.entries(PROBLEMS).map(([code, [status]]) => `${code} ${status}`);
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('has every kind of audit event', () => {
  const described = rowsOf('audit-events').flatMap(([resources, verbs]) =>
    codesIn(resources).flatMap((resource) => codesIn(verbs).map((verb) => `${resource}.${verb}`)),
  );
  const known = Object.entries(AUDITED).flatMap(([resource, verbs]) =>
    verbs.map((verb) => `${resource}.${verb}`),
  );
  expect(described.toSorted()).toEqual(known.toSorted());
});

it.each([
  ['source-states', SOURCE_MACHINE],
  ['policy-states', POLICY_MACHINE],
  ['enrollment-states', ENROLLMENT_MACHINE],
  ['key-states', KEY_MACHINE],
  ['target-states', TARGET_MACHINE],
  ['profile-states', PROFILE_MACHINE],
])('%s: every transition, and no other', (name, { table }) => {
  const described = rowsOf(name).flatMap(([from, event, to]) =>
    codesIn(from).map((state) => `${state} ${codesIn(event)[0]} ${codesIn(to)[0]}`),
  );
  const known = Object.entries(table).flatMap(([from, moves]) =>
    Object.entries(moves).map(([event, to]) => `${from} ${event} ${String(to)}`),
  );
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('has every role with the permission that it adds', () => {
  const described = tableNamed(document, 'roles');
  const added = ROLES.map((role, index) => {
    const before = ROLES[index - 1];
    const own = PERMISSIONS.filter((one) => roleHolds(role, one));
    return [role, own.find((one) => before === undefined || !roleHolds(before, one))];
  });
  expect(described.map(([role, permission]) => [codesIn(role)[0], codesIn(permission)[0]])).toEqual(added);
});

it('has every reason for which a source is not valid', () => {
  const files = ['process/outbound-fetch/fetch-failures', 'control/issuers/fetch-key-set'];
  const source = files.map((name) => readText(`src/${name}.ts`)).join('');
  const codes = [...source.matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(([, code]) => code);
  const described = rowsOf('source-failures').flatMap(([cell]) => codesIn(cell));
  expect(codes.length).toBeGreaterThan(15);
  expect(described.toSorted()).toEqual(codes.toSorted());
});

it('has the conditions of readiness, in their order', () => {
  expect(tableNamed(document, 'readiness').map(([cell]) => codesIn(cell)[0])).toEqual(READINESS_CONDITIONS);
});

it('has every event of the log', () => {
  const folders = [
    'src/control',
    ...['http-service', 'program', 'files'].map((name) => `src/process/${name}`),
  ];
  const logged = folders
    .flatMap((folder) => filesOfCheckout(folder, '.ts'))
    .flatMap((file) =>
      [...readText(file).matchAll(/\bevent: '([a-z_]+)'(?:,| })/g)].map(([, event]) => event),
    );
  const described = tableNamed(readText('docs/reference/log.md'), 'log-events').flatMap(([cell]) =>
    codesIn(cell),
  );
  expect(described.toSorted()).toEqual([...new Set(logged)].toSorted());
});

it('has the limits', () => {
  const bundle: { readonly properties: { readonly key_shards: { readonly maxItems: number } } } = JSON.parse(
    readText('docs/reference/schema/bundle.schema.json'),
  );
  const described = rowsOf('limits').map(([, limit = '']) =>
    [...limit.matchAll(/[0-9][0-9,]*/g)].map(([digits]) => Number(digits.replaceAll(',', ''))),
  );
  expect(described).toEqual([
    [MAX_BODY_BYTES, MAX_DEFINITION_BYTES, MAX_DECLARATION_BYTES],
    [MAX_PAGE_ITEMS],
    [MAX_TOKEN_BYTES],
    [MAX_TOKEN_LIFETIME_SECONDS],
    [CLOCK_SKEW_SECONDS],
    [CHALLENGE_LIFETIME_SECONDS],
    [POLL_WINDOW_SECONDS],
    [MIN_KEY_LIFETIME_SECONDS, MAX_KEY_LIFETIME_SECONDS],
    [MAX_KEYS_PER_TOKEN],
    [DEFAULT_SOURCE_CAPACITY],
    [MAX_RESPONSE_BYTES, FETCH_TIMEOUT_MS],
    [MAX_KEYS],
    [MAX_KEY_AGE_MS, DEFAULT_REFRESH_INTERVAL_MS],
    [MAX_CLIENTS],
    [MAX_SOURCES, MAX_POLICIES, MAX_TARGETS],
    [MAX_APPLIED_STEPS, MAX_SINGLE_STEPS],
    [MAX_BYTES_IN_FLIGHT],
    [bundle.properties.key_shards.maxItems, MAX_KEYS_PER_SHARD],
    [MAX_WAIT_SECONDS],
    [MAX_STEPS],
  ]);
});

it('has the default rates', () => {
  const rates = rowsOf('rates').flatMap(([, rate = '']) => /^\d+/.exec(rate) ?? []);
  expect(rates.map(Number)).toEqual(Object.values(DEFAULT_LIMITS));
});

describe('the example of an enrollment', () => {
  const blocks = new Map(
    [...readText('docs/design/enrollment.md').matchAll(/^```text example-(\S+)\n([\s\S]*?)^```$/gm)].map(
      ([, name = '', text = '']) => [name, text] as const,
    ),
  );
  const block = (name: string) => blocks.get(name) ?? '';
  const key = createPrivateKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: block('public-key').trim(), d: block('private-key').trim() },
    format: 'jwk',
  });
  const lineOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(block('enrollment'))?.[1] ?? '';
  const signatureOver = (text: Buffer) => sign(null, text, key).toString('base64url');

  it('has the text and the signature of a submission', () => {
    const text = enrollmentText({
      controlUrl: lineOf('control-url'),
      policyReference: lineOf('policy'),
      challengeId: lineOf('challenge-id'),
      challenge: lineOf('challenge'),
      keyThumbprint: createHash('sha256')
        .update(`{"crv":"Ed25519","kty":"OKP","x":"${block('public-key').trim()}"}`)
        .digest('base64url'),
      workloadToken: block('workload-token').trim(),
    });
    expect(block('enrollment')).toBe(text.toString());
    expect(block('signature').trim()).toBe(signatureOver(text));
  });

  it('has the authorization of a poll', () => {
    const [enrollmentId = '', time = ''] = block('poll').trim().split(' at ');
    const word = `${time}.${signatureOver(pollText(enrollmentId, Number(time)))}`;
    expect(block('poll-authorization')).toBe(`Authorization: ${POLL_SCHEME} ${word}\n`);
  });
});
