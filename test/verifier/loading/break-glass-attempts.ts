/** Ways in which a break-glass file could count although it must not: each is put in the place of the file. */
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DOCUMENTS, signDocument } from '../../../src/bundle/format/documents.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import type { SigningKey } from '../../../src/protocol/signing.ts';
import { breakGlassContent, breakGlassDocument } from '../../support/bundle/break-glass.ts';
import { freshnessDocument } from '../../support/bundle/bundle-directory.ts';
import { AUTH_SITE, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import { type Aged, LATER_SECONDS, signers } from './break-glass-fixture.ts';

export interface Attempt {
  readonly why: string;
  readonly put: (aged: Aged) => Promise<unknown>;
  /** What the verifier says of the file; undefined when there is none. */
  readonly seen: string | undefined;
}

const OTHER_HEAD = 'A'.repeat(43);
const NOW = LATER_SECONDS;
const stranger = newSigningKey();

export function validContent({ position }: Pick<Aged, 'position'>) {
  return breakGlassContent({ authSite: AUTH_SITE, ...position, fromSeconds: NOW });
}

const bytesOf = (aged: Aged, keys: readonly SigningKey[] = [signers.offline]) =>
  breakGlassDocument(validContent(aged), keys);

const file = (
  why: string,
  seen: string | undefined,
  bytes: (aged: Aged) => string | Uint8Array,
): Attempt => ({
  why,
  seen,
  put: (aged) => writeFile(aged.file, bytes(aged)),
});

/** The break-glass key signed this content. */
const content = (why: string, seen: string, change: (aged: Aged) => object): Attempt =>
  file(why, seen, (aged) =>
    breakGlassDocument({ ...validContent(aged), ...change(aged) }, [signers.offline]),
  );

/** Validly signed, of another bundle or time. */
const OTHERS: readonly Attempt[] = [
  content('of the next revision', 'accepted', ({ position }) => ({ revision: position.revision + 1 })),
  content('of the revision before', 'accepted', ({ position }) => ({ revision: position.revision - 1 })),
  content('of the largest revision', 'accepted', () => ({ revision: Number.MAX_SAFE_INTEGER })),
  content('of another head', 'accepted', () => ({ head: OTHER_HEAD })),
  content('of the head in capitals', 'accepted', ({ position }) => ({ head: position.head.toUpperCase() })),
  content('that begins in a second', 'accepted', () => ({ from: formatTime(NOW + 1) })),
  content('that begins in half an hour', 'accepted', () => ({ from: formatTime(NOW + 1800) })),
  content('that ends now', 'accepted', () => ({ from: formatTime(NOW - 60), until: formatTime(NOW) })),
  content('that ended a second ago', 'accepted', () => ({
    from: formatTime(NOW - 60),
    until: formatTime(NOW - 1),
  })),
  content('that ended yesterday', 'accepted', () => ({
    from: formatTime(NOW - 2 * 86_400),
    until: formatTime(NOW - 86_400),
  })),
  {
    why: 'that begins before a newer freshness statement',
    seen: 'accepted',
    put: async (aged) => {
      const statement = { authSite: AUTH_SITE, ...aged.position, asOfSeconds: NOW - 599 };
      const bytes = freshnessDocument(statement, signers.freshness);
      await writeFile(join(aged.directory, 'freshness.jws'), bytes);
      await aged.loader.reload();
      const begun = { ...validContent(aged), from: formatTime(NOW - 600) };
      await writeFile(aged.file, breakGlassDocument(begun, [signers.offline]));
    },
  },
];

const MEMBERS = ['auth_site', 'revision', 'head', 'from', 'until'] as const;

/** Signed by the break-glass key, and no statement. */
const MALFORMED: readonly Attempt[] = [
  content('of another site', 'auth_site_mismatch', () => ({ auth_site: 'shop-eu-2' })),
  content('of a site in other case', 'auth_site_mismatch', () => ({ auth_site: AUTH_SITE.toUpperCase() })),
  content('that lasts a second too long', 'time_order', () => ({ until: formatTime(NOW + 86_401) })),
  content('that lasts for a year', 'time_order', () => ({ until: formatTime(NOW + 366 * 86_400) })),
  content('that ends as it begins', 'time_order', () => ({ until: formatTime(NOW) })),
  content('that ends before it begins', 'time_order', () => ({ until: formatTime(NOW - 1) })),
  content('with a day that is none', 'time_invalid', () => ({ until: '2026-02-30T04:00:00Z' })),
  content('with a time zone', 'value_invalid', () => ({ from: '2026-11-21T05:00:00+01:00' })),
  content('with a time as a number', 'value_invalid', () => ({ from: NOW })),
  content('with a revision as a text', 'value_invalid', ({ position }) => ({
    revision: String(position.revision),
  })),
  content('with a broken revision', 'value_invalid', () => ({ revision: 7.5 })),
  content('with a list of heads', 'value_invalid', ({ position }) => ({ head: [position.head, OTHER_HEAD] })),
  content('with a padded head', 'value_invalid', ({ position }) => ({ head: `${position.head}=` })),
  content('with another member', 'unknown_member', () => ({ routes: ['prices'] })),
  ...MEMBERS.map((member) => content(`without ${member}`, 'missing_member', () => ({ [member]: undefined }))),
  ...MEMBERS.map((member) => content(`with null as ${member}`, 'value_invalid', () => ({ [member]: null }))),
  file('with a list of statements', 'value_invalid', (aged) =>
    breakGlassDocument([validContent(aged)], [signers.offline]),
  ),
];

/** Of the right content. */
const OTHER_SIGNERS: readonly (readonly [who: string, keys: readonly SigningKey[]])[] = [
  ['by the bundle key', [signers.bundle]],
  ['by the freshness key', [signers.freshness]],
  ['by both', [signers.bundle, signers.freshness]],
  ['by a stranger', [stranger]],
  ['by a stranger on another curve', [newSigningKey('ES256')]],
];
const WRONG_KEYS = OTHER_SIGNERS.map(([who, keys]) =>
  file(`signed ${who}`, 'signatures_insufficient', (aged) => bytesOf(aged, keys)),
);

const WRONG_TYPES: readonly Attempt[] = (['bundle', 'delta', 'link', 'freshness'] as const).map((kind) =>
  file(`with the type of a ${kind}`, 'document_type', (aged) =>
    breakGlassDocument(validContent(aged), [signers.offline], DOCUMENTS[kind].type),
  ),
);

/** Changes the signed document. */
const edited = (why: string, seen: string, edit: (text: string) => string): Attempt =>
  file(why, seen, (aged) => edit(bytesOf(aged).toString()));

const otherLetter = (letter: string) => (letter === 'A' ? 'B' : 'A');
const changedMember = (member: string) => (text: string) =>
  text.replace(new RegExp(`("${member}":"[^"]{20})(.)`), (_, before, letter) => before + otherLetter(letter));

const BYTES: readonly Attempt[] = [
  edited('that is empty', 'document_malformed', () => ''),
  edited('that is cut in half', 'document_malformed', (text) => text.slice(0, text.length / 2)),
  edited('that lacks its end', 'document_malformed', (text) => text.slice(0, -3)),
  edited('with a changed payload', 'signature_invalid', changedMember('payload')),
  edited('with a changed signature', 'signature_invalid', changedMember('signature')),
  edited('with no signature', 'document_malformed', (text) =>
    text.replace(/"signatures":\[.*\]/, '"signatures":[]'),
  ),
  edited('with a byte order mark', 'document_malformed', (text) => `\ufeff${text}`),
  edited('with two payloads', 'document_malformed', (text) => text.replace('{', '{"payload":"e30",')),
  edited('in a list', 'document_malformed', (text) => `[${text}]`),
  edited('as a compact JWS', 'document_malformed', (text) => {
    const { payload, signatures } = JSON.parse(text);
    return `${signatures[0].protected}.${payload}.${signatures[0].signature}`;
  }),
  edited('that is larger than 64 KiB', 'file_too_large', (text) => text + ' '.repeat(64 * 1024)),
  file('of zeros', 'document_malformed', () => Buffer.alloc(1000)),
  file('that names the break-glass key and is signed by another', 'signature_invalid', (aged) => {
    const own = JSON.parse(bytesOf(aged).toString());
    const other = JSON.parse(bytesOf(aged, [stranger]).toString());
    own.signatures[0].signature = other.signatures[0].signature;
    return JSON.stringify(own);
  }),
  file('that is a freshness statement of the break-glass key', 'document_type', ({ position }) =>
    freshnessDocument({ authSite: AUTH_SITE, ...position, asOfSeconds: NOW }, signers.offline),
  ),
  file('that is a freshness statement under the type of this one', 'missing_member', ({ position }) => {
    const { head, revision } = position;
    const payload = { auth_site: AUTH_SITE, revision, head, as_of: formatTime(NOW) };
    return signDocument(DOCUMENTS.breakGlass.type, Buffer.from(JSON.stringify(payload)), [signers.offline]);
  }),
];

const PLACES: readonly Attempt[] = [
  { why: 'that is missing', seen: undefined, put: async () => undefined },
  { why: 'that is a directory', seen: 'file_not_regular', put: ({ file: path }) => mkdir(path) },
  {
    why: 'that is a link to nothing',
    seen: undefined,
    put: ({ file: path, folder }) => symlink(join(folder, 'nothing'), path),
  },
  {
    why: 'that is a link to itself',
    seen: 'file_unreadable',
    put: ({ file: path }) => symlink(path, path),
  },
  {
    why: 'that is a link to a directory',
    seen: 'file_not_regular',
    put: ({ file: path, folder }) => symlink(folder, path),
  },
  {
    why: 'that is a pipe',
    seen: 'file_not_regular',
    put: async ({ file: path }) => execFileSync('mkfifo', [path]),
  },
  {
    why: 'that has another name',
    seen: undefined,
    put: (aged) => writeFile(join(aged.folder, 'break-glass.jws.new'), bytesOf(aged)),
  },
];

export const ATTEMPTS: readonly Attempt[] = [
  ...PLACES,
  ...OTHERS,
  ...MALFORMED,
  ...WRONG_KEYS,
  ...WRONG_TYPES,
  ...BYTES,
];
