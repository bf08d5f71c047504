/**
 * Fuzzes signed documents of a bundle. `d…`: bytes as a file or the network gives them, opened as each kind of document; no
 * unsigned document opens. The other inputs are payloads signed with the pinned key: `b…` a bundle, which is compiled, `s…` a
 * delta, which is applied, `f…` a freshness statement, `y…` a bundle as a person writes it. Signed or not, the result is a
 * snapshot or a BundleError.
 */
import { hash } from 'node:crypto';
import { readBundleYaml } from '../../../src/bundle/authoring/yaml-source.ts';
import { openBreakGlass } from '../../../src/bundle/compile/break-glass-statement.ts';
import { compileBundle } from '../../../src/bundle/compile/compile.ts';
import { prepareStep } from '../../../src/bundle/compile/compile-delta.ts';
import { applyFreshness, openFreshness } from '../../../src/bundle/compile/freshness-statement.ts';
import { BundleError } from '../../../src/bundle/format/bundle-error.ts';
import { DOCUMENTS, parsePayload, signDocument } from '../../../src/bundle/format/documents.ts';
import { openBundle, openStep } from '../../../src/bundle/format/open-document.ts';
import { asContent } from '../../../src/bundle/format/shape.ts';
import { TimeSlice } from '../../../src/bundle/format/time-slice.ts';
import { importPublicKey } from '../../../src/protocol/import-public-key.ts';
import type { PublicJwk, PublicKey } from '../../../src/protocol/public-key.ts';
import { ed25519KeyOfSeed } from '../../support/protocol/fixtures.ts';
import { NOW_SECONDS, SITE_CONTENT } from '../site.ts';
import { type FuzzTarget, mustHold } from '../target.ts';

const FILE = 'bundle.jws';
const HEAD = 'A'.repeat(43);
const AUTH_SITE = SITE_CONTENT.auth_site;
const pinned = ed25519KeyOfSeed('11'.repeat(32));
const options = { file: FILE, signers: { keys: [pinned.publicKey], threshold: 1 }, authSite: AUTH_SITE };

/** A point costs as much as all the rest, and its check is not what is looked for here. */
const imported = new Map<string, PublicKey | undefined>();
function importKey(jwk: PublicJwk): PublicKey | undefined {
  const name = JSON.stringify(jwk);
  if (!imported.has(name)) {
    if (imported.size > 10_000) imported.clear();
    imported.set(name, importPublicKey(jwk));
  }
  return imported.get(name);
}

const snapshot = await compileBundle(SITE_CONTENT, { file: FILE, head: HEAD, importKey });

const RUN_BY_LETTER: { readonly [letter: string]: (rest: Buffer) => void | Promise<void> } = {
  d: openAsEach,
  b: (payload) => compileContent(parsePayload(payload, FILE)),
  s: applyDelta,
  f: applyStatement,
  y: (text) => compileContent(readBundleYaml(text.toString('utf8'), FILE)),
};

async function run(input: Buffer): Promise<void> {
  const letter = String.fromCharCode(input[0] ?? 0);
  try {
    await (RUN_BY_LETTER[letter] ?? openAsEach)(input.subarray(1));
  } catch (error) {
    if (!(error instanceof BundleError)) throw error;
    mustHold(error.faults.length > 0, 'an error says what is wrong');
  }
}

function openAsEach(bytes: Buffer): void {
  const opened = [
    () => hash('sha256', JSON.stringify(openBundle(bytes, options).content)),
    () => hash('sha256', JSON.stringify(openStep('delta', bytes, options).position)),
    () => hash('sha256', JSON.stringify(openStep('link', bytes, options).position)),
    () => hash('sha256', JSON.stringify(openFreshness(bytes, options))),
    () => hash('sha256', JSON.stringify(openBreakGlass(bytes, options))),
  ].flatMap((open) => {
    try {
      return [open()];
    } catch (error) {
      if (error instanceof BundleError) return [];
      throw error;
    }
  });
  mustHold(opened.length <= 1, 'a document is of one kind');
  mustHold(
    opened.every((content) => SIGNED.has(content)),
    'only what was signed opens',
  );
}

async function compileContent(value: unknown): Promise<void> {
  const content = asContent('bundle', value, FILE);
  const compiled = await compileBundle(content, { file: FILE, head: HEAD, importKey });
  mustHold(compiled.routes.match('GET', 'https://a.example', '/').kind !== undefined, 'routes answer');
  mustHold(compiled.issuedAtSeconds < compiled.expiresAtSeconds, 'a bundle begins before it ends');
  mustHold(compiled.skewSeconds >= 1 && compiled.skewSeconds <= 60, 'skew is 1 to 60 seconds');
}

/** The change is prepared and dropped: the snapshot stays as it is for the next. */
async function applyDelta(payload: Buffer): Promise<void> {
  const step = openStep('delta', signDocument(DOCUMENTS.delta.type, payload, [pinned]), options);
  await prepareStep(snapshot, step, { importKey, slice: new TimeSlice() });
}

function applyStatement(payload: Buffer): void {
  const statement = openFreshness(signDocument(DOCUMENTS.freshness.type, payload, [pinned]), options);
  const step = applyFreshness(snapshot, statement, NOW_SECONDS);
  if (step.kind !== 'accept') return;
  mustHold(step.freshAsOfSeconds <= NOW_SECONDS + snapshot.skewSeconds, 'nothing is fresher than now');
  mustHold(step.freshAsOfSeconds > snapshot.freshAsOfSeconds, 'nothing makes a snapshot older');
}

const CLIENT = SITE_CONTENT.clients?.[0];
const DELTA = {
  auth_site: AUTH_SITE,
  revision: SITE_CONTENT.revision + 1,
  previous_head: HEAD,
  issued_at: SITE_CONTENT.issued_at,
  clients_put: CLIENT === undefined ? [] : [CLIENT],
  clients_removed: ['search'],
  keys_put: SITE_CONTENT.derived_keys?.slice(0, 1) ?? [],
  keys_removed: ['dk_reporting'],
};
const LINK = {
  auth_site: AUTH_SITE,
  revision: SITE_CONTENT.revision + 1,
  previous_head: HEAD,
  bundle_sha256: HEAD,
  issued_at: SITE_CONTENT.issued_at,
  expires_at: SITE_CONTENT.expires_at,
};
const STATEMENT = {
  auth_site: AUTH_SITE,
  revision: SITE_CONTENT.revision,
  head: HEAD,
  as_of: '2026-11-21T03:59:59Z',
};
const BREAK_GLASS = {
  auth_site: AUTH_SITE,
  revision: SITE_CONTENT.revision,
  head: HEAD,
  from: '2026-11-21T04:00:00Z',
  until: '2026-11-21T05:00:00Z',
};
/** One of everything: most of an input is worth changing. */
const SMALL = {
  ...SITE_CONTENT,
  issuers: SITE_CONTENT.issuers?.slice(0, 1),
  clients: SITE_CONTENT.clients?.slice(0, 1),
  derived_keys: SITE_CONTENT.derived_keys?.slice(0, 1),
  routes: SITE_CONTENT.routes.slice(0, 3),
};

const documents = [
  signDocument(DOCUMENTS.bundle.type, Buffer.from(JSON.stringify(SMALL)), [pinned]),
  signDocument(DOCUMENTS.delta.type, Buffer.from(JSON.stringify(DELTA)), [pinned]),
  signDocument(DOCUMENTS.link.type, Buffer.from(JSON.stringify(LINK)), [pinned]),
  signDocument(DOCUMENTS.freshness.type, Buffer.from(JSON.stringify(STATEMENT)), [pinned]),
  signDocument(DOCUMENTS.breakGlass.type, Buffer.from(JSON.stringify(BREAK_GLASS)), [pinned]),
];

/** What the documents above say, as `openAsEach` tells it. */
const SIGNED: ReadonlySet<string> = new Set(
  [
    openBundle(documents[0] ?? Buffer.alloc(0), options).content,
    openStep('delta', documents[1] ?? Buffer.alloc(0), options).position,
    openStep('link', documents[2] ?? Buffer.alloc(0), options).position,
    openFreshness(documents[3] ?? Buffer.alloc(0), options),
    openBreakGlass(documents[4] ?? Buffer.alloc(0), options),
  ].map((content) => hash('sha256', JSON.stringify(content))),
);

const withLetter = (letter: string, rest: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(letter), Buffer.from(rest)]);

export const bundleTarget: FuzzTarget = {
  name: 'bundle',
  seeds: [
    ...documents.map((document) => withLetter('d', document)),
    withLetter('b', JSON.stringify(SMALL)),
    withLetter('s', JSON.stringify(DELTA)),
    withLetter('f', JSON.stringify(STATEMENT)),
    withLetter('y', JSON.stringify(SMALL)),
    withLetter('y', 'format: proofgate.bundle/v1\nauth_site: shop-eu-1\nroutes: [{route_id: a}]\n'),
  ],
  dictionary: [
    ...Object.keys(SITE_CONTENT),
    ...[
      '"payload":"',
      '"signatures":[',
      '"protected":"',
      '"signature":"',
      'path_template',
      '{a}',
      '{a*}',
      'jwk',
    ],
    ...[
      'issuer',
      'subject_prefixes',
      'client_id',
      'key_id',
      'grants',
      'resource',
      'access',
      'read',
      'write',
      'kid',
    ],
    ...[
      'bounded',
      'realtime',
      'max_staleness_seconds',
      'signed_headers',
      'unbound',
      '__proto__',
      'constructor',
    ],
    ...[
      'null',
      'true',
      '[]',
      '{}',
      '":',
      ',"',
      '\\u0000',
      '1e9',
      '-1',
      '2026-11-21T03:59:59Z',
      '&a',
      '*a',
      '!!str ',
      '- ',
    ],
  ],
  maxBytes: 6000,
  maxStepsPerByte: 400,
  run,
};
