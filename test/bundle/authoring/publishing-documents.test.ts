/** Tests that a follower opens the documents that a publisher makes. */
import { describe, expect, it } from '@jest/globals';
import {
  linkOf,
  signDelta,
  signFreshness,
  signLink,
  signWholeBundle,
} from '../../../src/bundle/authoring/publishing-documents.ts';
import { headOf } from '../../../src/bundle/format/chain.ts';
import { openBundle, openStep } from '../../../src/bundle/format/open-document.ts';
import type { DeltaContent, LinkContent } from '../../../src/bundle/format/schema.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { codeAndPath } from '../../support/bundle/rejection.ts';
import {
  AUTH_SITE,
  bundleContent,
  type Edit,
  edited,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const signers = { keys: [keys.bundle.publicKey], threshold: 1 };
const options = { file: 'f', signers, authSite: AUTH_SITE };
const first = signWholeBundle(bundleContent(keys), [keys.bundle]);
const delta: DeltaContent = {
  auth_site: AUTH_SITE,
  revision: 2,
  previous_head: first.position.head,
  issued_at: formatTime(NOW_SECONDS),
  clients_put: [],
  clients_removed: [],
  keys_put: [],
  keys_removed: ['dk_billing'],
};

describe('what is signed', () => {
  it('opens as a whole bundle at the same position', () => {
    const opened = openBundle(first.document, options);
    expect(opened.position).toEqual(first.position);
    expect(opened.content).toEqual(bundleContent(keys));
  });

  it('opens as a delta that continues it', () => {
    const { document, position } = signDelta(delta, [keys.bundle]);
    expect(openStep('delta', document, options)).toEqual({
      kind: 'delta',
      file: 'f',
      content: delta,
      previousHead: first.position.head,
      position,
      issuedAtSeconds: NOW_SECONDS,
    });
    expect(position).toEqual({
      revision: 2,
      head: headOf(first.position.head, Buffer.from(JSON.stringify(delta))),
    });
  });

  it('a link ends where the whole bundle does that it stands for', () => {
    const content = { ...bundleContent(keys), revision: 9, previous_head: first.position.head };
    const whole = signWholeBundle(content, [keys.bundle]);
    const link = linkOf(content, whole);
    if (link === undefined) throw new Error('no link');
    const signed = signLink(link, [keys.bundle]);
    expect(signed.position).toEqual(whole.position);
    expect(openStep('link', signed.document, options)).toMatchObject({
      kind: 'link',
      position: openBundle(whole.document, options).position,
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 86_400,
    });
    expect(linkOf(bundleContent(keys), first)).toBeUndefined();
  });

  it('is refused before it is signed when it has another shape, or no key signs', async () => {
    expect(await codeAndPath(() => signDelta({ ...delta, revision: 0 }, [keys.bundle]))).toBe(
      'value_invalid /revision',
    );
    expect(await codeAndPath(() => signDelta({ ...delta, previous_head: `${'A'.repeat(42)}B` }, []))).toBe(
      'value_invalid /previous_head',
    );
    expect(await codeAndPath(() => signDelta(delta, []))).toBe('signing_key_missing ');
    const statement = { auth_site: AUTH_SITE, revision: 1, head: 'x', as_of: formatTime(NOW_SECONDS) };
    expect(await codeAndPath(() => signFreshness(statement, [keys.bundle]))).toBe('value_invalid /head');
    const large = Array.from({ length: 50_000 }, (_, index) => `${index}${'x'.repeat(120)}`);
    const many = { ...delta, keys_removed: large, clients_removed: large.concat(large) };
    expect(await codeAndPath(() => signDelta(many, [keys.bundle]))).toBe('file_too_large ');
  });
});

describe('what is opened', () => {
  const link: LinkContent = {
    auth_site: AUTH_SITE,
    revision: 2,
    previous_head: first.position.head,
    bundle_sha256: first.payloadSha256,
    issued_at: formatTime(NOW_SECONDS),
    expires_at: formatTime(NOW_SECONDS + 60),
  };

  it.each<[kind: 'delta' | 'link', edit: Edit, expected: string]>([
    ['delta', { at: '/auth_site', put: 'other' }, 'auth_site_mismatch /auth_site'],
    ['delta', { at: '/issued_at', put: '2026-02-30T00:00:00Z' }, 'time_invalid /issued_at'],
    ['link', { at: '/auth_site', put: 'other' }, 'auth_site_mismatch /auth_site'],
    ['link', { at: '/issued_at', put: '2026-02-30T00:00:00Z' }, 'time_invalid /issued_at'],
    ['link', { at: '/expires_at', put: '2026-02-30T00:00:00Z' }, 'time_invalid /expires_at'],
    ['link', { at: '/expires_at', put: formatTime(NOW_SECONDS) }, 'time_order /expires_at'],
  ])('%s refused: %o', async (kind, edit, expected) => {
    const content: unknown = edited(kind === 'delta' ? delta : link, edit);
    const { document } =
      kind === 'delta'
        ? signDelta(content as DeltaContent, [keys.bundle])
        : signLink(content as LinkContent, [keys.bundle]);
    expect(await codeAndPath(() => openStep(kind, document, options))).toBe(expected);
  });

  it('is of its kind, and signed by a pinned key', async () => {
    const signed = signDelta(delta, [keys.bundle]).document;
    expect(await codeAndPath(() => openStep('link', signed, options))).toMatch(/^document_type /);
    const strange = signDelta(delta, [newSigningKey()]).document;
    expect(await codeAndPath(() => openStep('delta', strange, options))).toMatch(/^signatures_insufficient /);
    const two = signDelta(delta, [keys.bundle, newSigningKey()]).document;
    expect(openStep('delta', two, options).position.revision).toBe(2);
  });
});
