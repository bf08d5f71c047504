/** Decisions on requests with a passport, whose holder signs with the npm package http-message-signatures. */
import { describe, expect, it } from '@jest/globals';
import { captureDocument, type DeniedRequest } from '../../../src/verifier/capture/capture-document.ts';
import { AUTH_SITE, NOW_SECONDS, ORIGIN } from '../../support/fixtures/bundle-content.ts';
import { type HeaderLookups, headersOf } from '../../support/fixtures/header-lines.ts';
import {
  compileHttpSite,
  httpSiteContent,
  httpSiteKeys,
} from '../../support/fixtures/http-signature-site.ts';
import { type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, KEY_ID, type SiteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier, outcomeOf } from '../../support/fixtures/test-verifier.ts';
import { type HttpSigningOptions, signHttp } from '../../support/protocol/http-signer.ts';

const keys = httpSiteKeys;
const snapshot = await compileHttpSite();
const READ = `${ORIGIN}/v1/orders/17?fields=id`;
const BEARER = `${ORIGIN}/v1/bearer`;
const COVERED = ['@method', '@target-uri', 'authorization'];
const IN_ITS_OWN_HEADER = ['@method', '@target-uri', 'x-proofgate-passport'];
const holderOf = (caller: RequestPlan['caller']) => ({
  key: keys[caller],
  keyId: keys[caller].publicKey.thumbprint,
});

interface Change {
  readonly caller?: RequestPlan['caller'];
  readonly url?: string;
  readonly sign?: Partial<HttpSigningOptions>;
  /** Headers as they arrive, beside or in place of the signed ones. */
  readonly headers?: HeaderLookups;
}

/** The header lines in which a caller has its passport for the route. */
function passportLines(caller: RequestPlan['caller'], url: string): Record<string, string> {
  const route = url === BEARER ? 'bearer' : 'orders-read';
  const { facts } = signRequest(keys, { caller, route });
  const names = ['authorization', 'x-proofgate-passport'];
  return Object.fromEntries(
    names.flatMap((name) => facts.headers.values(name).map((value) => [name, value])),
  );
}

async function factsOf({ caller = 'broker', headers, sign, url = READ }: Change) {
  const fields = url === BEARER ? IN_ITS_OWN_HEADER : COVERED;
  const signed = await signHttp(
    { method: 'GET', url, headers: passportLines(caller, url) },
    { ...holderOf(caller), authSite: AUTH_SITE, createdSeconds: NOW_SECONDS, fields, ...sign },
  );
  const [, scheme = '', authority = '', target = ''] = /^([a-z]+):\/\/([^/]+)(.*)$/.exec(url) ?? [];
  const head = { method: 'GET', scheme, authority, target, headers: headersOf({ ...signed, ...headers }) };
  return { ...head, body: { kind: 'none' }, removesProofs: true } as const;
}

async function decide(change: Change, site = snapshot) {
  const tested = createTestVerifier({ snapshot: site, nowSeconds: NOW_SECONDS });
  return { decision: checkNow(tested.verifier, await factsOf(change)), ...tested };
}

it.each<[string, Change]>([
  ['a workload of the broker', {}],
  ["a workload's key of ES256", { caller: 'brokerEc' }],
  ['a derived key', { caller: 'billing' }],
  ['a passport in its own header', { caller: 'billing', url: BEARER }],
])('allows %s', async (_, change) => {
  const { decision, events, store } = await decide(change);
  expect(outcomeOf(decision)).toBe('allowed');
  const caller = change.caller ?? 'broker';
  expect(events).toMatchObject([
    { proof_format: 'http-message-signatures', key_id: KEY_ID[caller], passport_id: expect.any(String) },
  ]);
  expect(store.claims).toMatchObject([{ holderThumbprint: keys[caller].publicKey.thumbprint }]);
});

describe('denies', () => {
  const params = ['created', 'expires', 'nonce', 'keyid', 'tag'];
  it.each<[string, Change, string]>([
    ['an uncovered passport', { sign: { fields: COVERED.slice(0, 2) } }, 'component.authorization 403'],
    [
      'an uncovered passport in its own header',
      { caller: 'billing', url: BEARER, sign: { fields: IN_ITS_OWN_HEADER.slice(0, 2) } },
      'component.x-proofgate-passport 403',
    ],
    ['the signature of another key', { sign: { key: keys.billing } }, 'proof_signature 401'],
    ['another key and its name', { sign: holderOf('billing') }, 'proof_signature 401'],
    [
      'the name of the key in the bundle',
      { caller: 'billing', sign: { keyId: KEY_ID.billing } },
      'proof_signature 401',
    ],
    ['no name of the key', { sign: { params: params.filter((p) => p !== 'keyid') } }, 'proof_malformed 401'],
    [
      'the passport of another caller',
      { headers: { authorization: passportLines('brokerEc', READ).authorization ?? '' } },
      'proof_signature 401',
    ],
    ['no passport', { headers: { authorization: undefined } }, 'proof_malformed 401'],
    ['two passports', { headers: { authorization: { kind: 'ambiguous' } } }, 'passport_malformed 401'],
    ['a passport as a bearer token', { headers: { authorization: 'Bearer x' } }, 'authorization_scheme 401'],
    ['half a transcript beside it', { headers: { 'x-proofgate-signature': 'x' } }, 'proof_ambiguous 401'],
    [
      'a second passport',
      { caller: 'billing', url: BEARER, headers: passportLines('billing', READ) },
      'passport_repeated 401',
    ],
  ])('%s', async (_, change, expected) => {
    const { decision, store } = await decide(change);
    expect([outcomeOf(decision).replace(/^[a-z_]+\//, ''), store.claims]).toEqual([expected, []]);
  });

  it('a blocked subject, a revoked key and an old passport, as with a transcript', async () => {
    const content = httpSiteContent();
    const { iss: issuer = '', sub: subject = '' } = claimsOf('broker');
    content.blocked = [{ issuer, subject }];
    expect(await outcomeAt(content, {})).toBe('subject_blocked 401');
    expect(await outcomeAt(httpSiteContent(), { caller: 'revoked' })).toBe('key_revoked 401');
  });
});

function claimsOf(caller: RequestPlan['caller']): { readonly iss?: string; readonly sub?: string } {
  const [, payload = ''] = (passportLines(caller, READ).authorization ?? '').split('.');
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
}

async function outcomeAt(content: SiteContent, change: Change): Promise<string> {
  const { decision } = await decide(change, await compileSite(content));
  return outcomeOf(decision).replace(/^[a-z_]+\//, '');
}

it('a nonce counts once, whether transcript or signature', async () => {
  const { facts, transcriptText } = signRequest(keys, { caller: 'broker', route: 'orders-read' });
  const [, nonce = ''] = /^jti=(.*)$/m.exec(transcriptText) ?? [];
  const { verifier, store } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS });
  expect(outcomeOf(checkNow(verifier, facts))).toBe('allowed');
  const again = await decide({ sign: { nonce } });
  expect(again.store.claims[0]?.identifier).toBe(store.claims[0]?.identifier);
});

it('explains the signature base without the passport in it', async () => {
  const captured: DeniedRequest[] = [];
  const onDenied = (denied: DeniedRequest) => captured.push(denied);
  const { verifier } = createTestVerifier({ snapshot, nowSeconds: NOW_SECONDS, onDenied });
  const fields = ['authorization', '@target-uri'];
  const facts = await factsOf({ sign: { fields } });
  expect(outcomeOf(checkNow(verifier, facts))).toContain('component.@method');
  const [denied] = captured;
  if (denied === undefined) throw new Error('not denied');
  const document = captureDocument(denied, { realtimeStalenessSeconds: 10, keepsCredentials: false });
  const text = JSON.parse(document).text.join('\n');
  expect(text).toMatch(
    /passport .+, key .+\n +HTTP message signature of key .+; its base:\n +"authorization": \[/,
  );
  for (const part of facts.headers.values('authorization')[0]?.split(/[ .]/).slice(1) ?? []) {
    expect(document).not.toContain(part);
  }
});
