/** Tests that the published files match their cases, fit their schema, and are complete. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { openBundle } from '../../src/bundle/format/open-document.ts';
import { importPublicJwk } from '../../src/protocol/import-public-key.ts';
import { REASONS } from '../../src/protocol/reasons.ts';
import { TABLE } from '../support/cases/table.ts';
import { NOW_SECONDS } from '../support/fixtures/bundle-content.ts';
import { signEs256Deterministically } from '../support/fixtures/deterministic-es256.ts';
import { type RequestPlan, signRequest } from '../support/fixtures/signed-request.ts';
import { TEST_SITE_KEYS } from '../support/fixtures/test-keys.ts';
import { outcomeOf } from '../support/fixtures/test-verifier.ts';
import { P256_KEY } from '../support/protocol/fixtures.ts';
import {
  ALLOWED,
  BUNDLES,
  contentOf,
  DENIED,
  FILE_NAMES,
  fitsSchema,
  REPLAY,
  readVectors,
  SIGNING,
  textOf,
} from '../support/protocol/published-vectors.ts';
import { createBench, storeOf } from './bench.ts';
import { vectorFiles } from './make/files.ts';
import type { ExpectedDenial } from './make/format.ts';
import { applyPatch, patchBetween } from './make/json-patch.ts';

describe('the files', () => {
  const made = vectorFiles();

  it.each([...made.keys()])(
    '%s is what its cases make (otherwise: node scripts/make-vectors.mjs)',
    (name) => {
      // Compared as lines, so that a failure shows which.
      expect(textOf(name).split('\n')).toEqual(made.get(name)?.split('\n'));
    },
  );

  it.each(FILE_NAMES)('%s fits the schema, and with an unknown member it does not', (name) => {
    const value = readVectors(name);
    const places = objectsIn(value).filter((place) => !isFree(place));
    expect(places.length).toBeGreaterThan(0);
    for (const place of places.slice(0, 200)) {
      Reflect.set(place, 'unknown', 1);
      expect(fitsSchema(value)).toBe(false);
      Reflect.deleteProperty(place, 'unknown');
    }
    expect(fitsSchema(value)).toBe(true);
  });
});

/** Objects whose members are the schema's, with the ones inside them. */
function objectsIn(value: unknown): readonly object[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(objectsIn);
  if (isFree(value)) return [];
  return [
    value,
    ...Object.entries(value).flatMap(([name, member]) => (FREE.has(name) ? [] : objectsIn(member))),
  ];
}

/** Members that hold bundles, names of headers, rules or whatever a patch puts somewhere. */
const FREE: ReadonlySet<string> = new Set([
  'content',
  'document',
  'pinned_key',
  'upstream_headers',
  'refused',
  'value',
]);

function isFree(value: object): boolean {
  return Object.keys(value).length === 0;
}

describe('what they hold', () => {
  const denials: readonly ExpectedDenial[] = [...DENIED, ...REPLAY.flatMap(({ steps }) => steps)].flatMap(
    ({ expected }) => (expected.outcome === 'denied' ? [expected] : []),
  );

  it('is enough', () => {
    expect(ALLOWED.length).toBeGreaterThanOrEqual(25);
    expect(DENIED.length).toBeGreaterThanOrEqual(120);
    expect(SIGNING.length).toBeGreaterThanOrEqual(10);
  });

  it('has a name of its own each', () => {
    for (const vectors of [[...ALLOWED, ...DENIED], REPLAY, SIGNING, BUNDLES]) {
      expect(new Set(vectors.map(({ name }) => name)).size).toBe(vectors.length);
    }
  });

  it('lets no file hold the other outcome', () => {
    expect(new Set(ALLOWED.map(({ expected }) => expected.outcome))).toEqual(new Set(['allowed']));
    expect(new Set(DENIED.map(({ expected }) => expected.outcome))).toEqual(new Set(['denied']));
  });

  it('covers every row of the decision table, reason by reason and detail by detail', () => {
    const covered = new Set(
      denials.map(({ detail, reason, status, step }) => `${step} ${reason} ${detail ?? ''} ${status}`),
    );
    const names = new Set(denials.map(({ reason, step }) => `${step} ${reason}`));
    expect(ROWS.length).toBeGreaterThan(20);
    expect(new Set(ROWS.flatMap(({ reasons }) => reasons)).size).toBe(REASONS.length - 1);
    const missing = ROWS.flatMap(({ details, reasons, status, step }) =>
      reasons.flatMap((reason) => {
        // Details that are names out of the bundle.
        if (details === 'any') return names.has(`${step} ${reason}`) ? [] : [`${step} ${reason}`];
        return details
          .map((detail) => `${step} ${reason} ${detail} ${status}`)
          .filter((row) => !covered.has(row));
      }),
    );
    expect(missing).toEqual([]);
  });

  it('gives every denial a row of the table', () => {
    const rows = new Set(
      ROWS.flatMap(({ reasons, status, step }) => reasons.map((reason) => `${step} ${reason} ${status}`)),
    );
    const others = denials.filter(({ reason, status, step }) => !rows.has(`${step} ${reason} ${status}`));
    expect(others).toEqual([]);
  });
});

interface Row {
  readonly step: number;
  readonly reasons: readonly string[];
  /** `['']`: none. */
  readonly details: readonly string[] | 'any';
  readonly status: number;
}

/** Names of lines that can differ, as the page lists them, with one signed header for all. */
const BINDING_DETAILS = [
  ...[
    'auth-site',
    'key-id',
    'passport-sha256',
    'issuer',
    'subject',
    'audience',
    'route-id',
    'method',
    'scheme',
  ],
  ...['authority', 'target', 'content-sha256', 'headers', 'header.x-tenant', 'body_unavailable'],
];

const PAGE = readFileSync(new URL('../../docs/design/protocol.md', import.meta.url), 'utf8');

const ROWS = rowsOf(PAGE);

/** The decision table of docs/design/protocol.md. */
function rowsOf(page: string): readonly Row[] {
  let step = 0;
  return [...page.matchAll(/^\| ?([1-6]?) \|[^|]*\|([^|]*)\|([^|]*)\| \**(\d{3})\** \|$/gm)].map((match) => {
    const [, number, reasons = '', details = '', status] = match;
    if (number !== '') step = Number(number);
    return { step, reasons: quoted(reasons), details: detailsOf(details), status: Number(status) };
  });
}

function detailsOf(cell: string): Row['details'] {
  if (cell.includes('see below')) return BINDING_DETAILS;
  if (cell.includes('the name')) return 'any';
  const names = quoted(cell);
  return names.length === 0 ? [''] : names;
}

function quoted(text: string): readonly string[] {
  return [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name);
}

/** The route's own broker may not call it, for any client. */
const OTHERWISE_DENIED = [
  'more than the key may say: one broker in the name of another: source_issuer_mismatch 403',
];

/** These faults lie in the plan itself: caller and route. No edit could be undone. */
const WRONG_AS_PLANNED = [
  'who may call what: write without the grant',
  'who may call what: DELETE is write',
  'who may call what: no grant of the resource',
  'who may call what: a revoked key',
  'who may call what: attested, by a derived key that claims to be',
  'freshness: future at 0 s, where realtime is 10 s',
  'the body: empty, of a GET, hashed',
];

describe('one fault each', () => {
  const bench = createBench();

  /** Many cases begin with the same request. */
  const known = new Map<string, Promise<string>>();

  function outcomeOfPlan(plan: RequestPlan): Promise<string> {
    const sound = { ...plan, nowSeconds: NOW_SECONDS };
    const { body, caller, holder, route } = sound;
    const key = JSON.stringify([caller, route, holder?.publicKey.thumbprint, body && [...body]]);
    const outcome = known.get(key) ?? ask(sound);
    known.set(key, outcome);
    return outcome;
  }

  async function ask(plan: RequestPlan): Promise<string> {
    const store = storeOf(null, NOW_SECONDS);
    await bench.set({ bundle: 'site', nowSeconds: NOW_SECONDS, realtimeStalenessSeconds: 10, store });
    return outcomeOf(await bench.verifier.check(signRequest(TEST_SITE_KEYS, plan).facts));
  }

  it('is allowed once the fault is taken away', async () => {
    const wrongAsPlanned: string[] = [];
    const others: string[] = [];
    for (const { name, outcome, plan } of TABLE.filter((entry) => entry.outcome !== 'allowed')) {
      const without = await outcomeOfPlan(plan);
      if (without === 'allowed') continue;
      if (without === outcome) wrongAsPlanned.push(name);
      else others.push(`${name}: ${without}`);
    }
    expect(others).toEqual(OTHERWISE_DENIED);
    expect(wrongAsPlanned).toEqual(WRONG_AS_PLANNED);
  });
});

describe('what makes them', () => {
  it('signs ES256 as RFC 6979, appendix A.2.5, does', () => {
    const { d = '' } = P256_KEY.privateKey.export({ format: 'jwk' });
    const signature = signEs256Deterministically(Buffer.from(d, 'base64url'), Buffer.from('sample'));
    expect(signature.toString('hex')).toBe(
      'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716' +
        'f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8',
    );
  });

  it('patches one JSON value into another', () => {
    const from = { a: [1, { b: 2 }], 'c/~d': { e: 1 }, f: 1 };
    for (const to of [from, { a: [1, { b: 3 }], 'c/~d': { g: [] }, f: null }, { a: [1], 'c/~d': 0 }, []]) {
      expect(applyPatch(from, patchBetween(from, to))).toEqual(to);
    }
    expect(() => applyPatch(from, [{ op: 'replace', path: '/x', value: 1 }])).toThrow('no such place');
    expect(() => applyPatch(from, [{ op: 'remove', path: '/a/7' }])).toThrow('no such place');
  });
});

describe('bundles', () => {
  it('has one whole bundle, whose document the pinned key signed', () => {
    const [whole, ...others] = BUNDLES.filter((bundle) => 'content' in bundle);
    if (whole === undefined) throw new Error('no whole bundle');
    expect(others).toEqual([]);
    const pinned = importPublicJwk(whole.pinned_key);
    if (pinned === undefined) throw new Error('no key');
    const signers = { keys: [pinned], threshold: 1 };
    const opened = openBundle(Buffer.from(JSON.stringify(whole.document)), {
      file: 'bundle.jws',
      signers,
      authSite: undefined,
    });
    expect(opened.content).toEqual(whole.content);
    expect(opened.position.head).toBe(whole.head);
  });

  it('has no bundle that nothing uses, and patches that change something', () => {
    const used = new Set<string | null>([...ALLOWED, ...DENIED, ...REPLAY].map(({ bundle }) => bundle));
    for (const { name } of BUNDLES) expect([name, used.has(name)]).toEqual([name, true]);
    const texts = BUNDLES.map(({ name }) => JSON.stringify(contentOf(name)));
    expect(new Set(texts).size).toBe(texts.length);
  });
});
