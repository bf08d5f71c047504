/** What docs/control.md says of codes, states, events and the signed texts is what the code does. */
import { createHash, createPrivateKey, sign } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { READINESS_CONDITIONS } from '../../src/control/api/contract/enrollment.ts';
import { AUDITED } from '../../src/control/domain/audit-kinds.ts';
import { ENROLLMENT_MACHINE, KEY_MACHINE, POLICY_MACHINE } from '../../src/control/domain/enrollment.ts';
import { REFUSALS } from '../../src/control/domain/refusal.ts';
import { PERMISSIONS, ROLES, roleHolds } from '../../src/control/domain/roles.ts';
import { PROFILE_MACHINE, TARGET_MACHINE } from '../../src/control/domain/runtime.ts';
import { SOURCE_MACHINE } from '../../src/control/domain/source.ts';
import { enrollmentText, POLL_SCHEME, pollText } from '../../src/protocol/enrollment.ts';
import { codesIn, filesOfCheckout, readText, sectionOf, tableRows } from './markdown.ts';

const document = readText('docs/control.md');
const rowsOf = (heading: string) => tableRows(sectionOf(document, heading));

it('has every code that Control refuses with, once, with its status', () => {
  const described = rowsOf('Problems').flatMap(([codes, status]) =>
    codesIn(codes).map((code) => `${code} ${status}`),
  );
  const known = Object.entries(REFUSALS).map(([code, [status]]) => `${code} ${status}`);
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('has every kind of audit event', () => {
  const described = rowsOf('Audit events').flatMap(([resources, verbs]) =>
    codesIn(resources).flatMap((resource) => codesIn(verbs).map((verb) => `${resource}.${verb}`)),
  );
  const known = Object.entries(AUDITED).flatMap(([resource, verbs]) =>
    verbs.map((verb) => `${resource}.${verb}`),
  );
  expect(described.toSorted()).toEqual(known.toSorted());
});

it.each([
  ['States of a source', SOURCE_MACHINE],
  ['States of a policy', POLICY_MACHINE],
  ['States of an enrollment', ENROLLMENT_MACHINE],
  ['States of a derived key', KEY_MACHINE],
  ['States of a target', TARGET_MACHINE],
  ['Grants and signing profiles', PROFILE_MACHINE],
])('%s: every transition, and no other', (heading, { table }) => {
  const described = rowsOf(heading).flatMap(([from, event, to]) =>
    codesIn(from).map((state) => `${state} ${codesIn(event)[0]} ${codesIn(to)[0]}`),
  );
  const known = Object.entries(table).flatMap(([from, moves]) =>
    Object.entries(moves).map(([event, to]) => `${from} ${event} ${String(to)}`),
  );
  expect(described.toSorted()).toEqual(known.toSorted());
});

it('has every role with the permission that it adds', () => {
  const described = rowsOf('Scope, permissions, secrets').slice(0, ROLES.length);
  const added = ROLES.map((role, index) => {
    const before = ROLES[index - 1];
    const own = PERMISSIONS.filter((one) => roleHolds(role, one));
    return [role, own.find((one) => before === undefined || !roleHolds(before, one))];
  });
  expect(described.map(([role, permission]) => [codesIn(role)[0], codesIn(permission)[0]])).toEqual(added);
});

it('has every reason for which a source is not valid', () => {
  const source = readText('src/control/issuers/failures.ts');
  const codes = [...source.matchAll(/^ {2}\| '([a-z_]+)'/gm)].map(([, code]) => code);
  const described = rowsOf('Outbound fetches').flatMap(([cell]) => codesIn(cell));
  expect(codes.length).toBeGreaterThan(15);
  expect(described.toSorted()).toEqual(codes.toSorted());
});

it('has the conditions of readiness, in their order', () => {
  expect(rowsOf('Readiness').map(([cell]) => codesIn(cell)[0])).toEqual(READINESS_CONDITIONS);
});

it('has every event of the log', () => {
  const files = [
    ...filesOfCheckout('src/control', '.ts'),
    ...filesOfCheckout('src/cli', '.ts').filter((file) => file.includes('/control-')),
  ];
  const logged = files.flatMap((file) =>
    [...readText(file).matchAll(/\bevent: '([a-z_]+)'(?:,| })/g)].map(([, event]) => event),
  );
  const described = rowsOf('Log events').flatMap(([cell]) => codesIn(cell));
  expect(described.toSorted()).toEqual([...new Set(logged)].toSorted());
});

describe('the example of an enrollment', () => {
  const section = sectionOf(document, 'An example');
  const factOf = (name: string) =>
    new RegExp(`^${name.replace(/[()]/g, '\\$&')}\\s+(\\S+)$`, 'm').exec(section)?.[1] ?? '';
  const lineOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(section)?.[1] ?? '';
  const x = factOf('public key (x)');
  const key = createPrivateKey({
    key: { kty: 'OKP', crv: 'Ed25519', x, d: factOf('private key (d)') },
    format: 'jwk',
  });
  const signatureOver = (text: Buffer) => sign(null, text, key).toString('base64url');

  it('has the text and the signature of a submission', () => {
    const text = enrollmentText({
      controlUrl: lineOf('control-url'),
      policyReference: lineOf('policy'),
      challengeId: lineOf('challenge-id'),
      challenge: lineOf('challenge'),
      keyThumbprint: createHash('sha256')
        .update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`)
        .digest('base64url'),
      workloadToken: factOf('workload token'),
    });
    expect(section).toContain(`\`\`\`\n${text.toString()}\`\`\`\n`);
    expect(section).toContain(`\`signature\`: \`${signatureOver(text)}\``);
  });

  it('has the authorization of a poll', () => {
    const [, enrollmentId = '', time = ''] = /A poll of `(\w+)` at (\d+):/.exec(section) ?? [];
    const word = `${time}.${signatureOver(pollText(enrollmentId, Number(time)))}`;
    expect(section).toContain(`\nAuthorization: ${POLL_SCHEME} ${word}\n`);
  });
});
