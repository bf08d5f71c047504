/** Tests that the oracle detects each kind of success, and calls what was served as it was signed no success. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { DecisionEvent } from '../../src/process/telemetry/decision-event.ts';
import type { Transcript } from '../../src/protocol/transcript.ts';
import { type CampaignResult, runCampaign } from '../support/hostile/campaign.ts';
import { HIDDEN, type Http1Case } from '../support/hostile/cases.ts';
import { judge, type SuccessKind } from '../support/hostile/judge.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { type CarelessProxy, startCarelessProxy } from './oracle/careless-proxy.ts';
import { misdeliveries } from './oracle/misdeliveries.ts';
import { LENIENT_READINGS, readRequests, STRICT } from './oracle/readings.ts';

const HOST = 'Host: api.shop.example\r\n';
const READ = `GET /v1/orders/4711 HTTP/1.1\r\n${HOST}`;
const CREATE = `POST /v1/orders HTTP/1.1\r\n${HOST}`;

const transcript: Transcript = {
  authSite: 'shop-e2e',
  keyId: 'k',
  passportSha256: 'p',
  issuer: 'i',
  subject: 'client:billing',
  audience: 'a',
  routeId: 'orders-create',
  method: 'POST',
  scheme: 'http',
  authority: 'api.shop.example',
  target: '/v1/orders',
  jti: 'j',
  issuedAtSeconds: 1,
  expiresAtSeconds: 2,
  // SHA-256 of `order`.
  contentSha256: 'Put-luWc5A-csaCJ2roHn9aZ9oZ6MPZjSvhXCWeyN1o',
  headers: [{ name: 'x-tenant', value: 't1' }],
};

const openTranscripts = (...hashes: readonly string[]) =>
  hashes.map((transcriptSha256) => ({ transcriptSha256, transcript }));

describe('a campaign against a careless proxy', () => {
  let site: Site;
  let proxy: CarelessProxy | undefined;
  beforeAll(async () => {
    site = await createSite();
  });
  afterAll(() => site.remove());
  afterEach(async () => {
    await proxy?.stop();
    proxy = undefined;
  });

  async function attackWith(one: Pick<Http1Case, 'signs' | 'writes'>): Promise<CampaignResult> {
    proxy = await startCarelessProxy();
    const target = { site, point: proxy, recording: proxy.upstream, servesWithinMs: 300 };
    return runCampaign(target, [{ ...one, name: 'attack', family: 'test', success: '' }]);
  }

  it.each<[SuccessKind, string, Pick<Http1Case, 'signs' | 'writes'>]>([
    [
      'unverified',
      'a second request',
      { signs: [{ route: 'readOrder' }], writes: [`${READ}{proof}\r\n${HIDDEN}`] },
    ],
    [
      'ambiguous',
      'a length beside a transfer coding',
      {
        signs: [{ route: 'createOrder', body: `0\r\n\r\n${HIDDEN}` }],
        writes: [`${CREATE}{proof}Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n\r\n{body}`],
      },
    ],
    [
      'altered',
      'another body',
      {
        signs: [{ route: 'createOrder', body: 'a' }],
        writes: [`${CREATE}{proof}Content-Length: 1\r\n\r\nb`],
      },
    ],
    [
      'context',
      'a header that only the verifier may set',
      { signs: [{ route: 'readOrder' }], writes: [`${READ}{proof}X-Proofgate_Subject: root\r\n\r\n`] },
    ],
    [
      'answer',
      'a second request, whose answer the next caller receives',
      { signs: [{ route: 'readOrder' }], writes: [`${READ}{proof}\r\n${HIDDEN}`] },
    ],
    [
      'outage',
      'a byte at which the proxy stops',
      { signs: [{ route: 'readOrder' }], writes: [`${READ}{proof}X: \0\r\n\r\n`] },
    ],
  ])('detects %s: %s', async (kind, _what, one) => {
    const { successes } = await attackWith(one);
    expect(successes.map((success) => success.kind)).toContain(kind);
  });
});

describe('judge', () => {
  const event: DecisionEvent = {
    event: 'proofgate.decision',
    time: '2026-01-01T00:00:00.000Z',
    decision_id: '00000000-0000-4000-8000-000000000001',
    outcome: 'allowed',
    subject: 'client:billing',
    transcript_sha256: 'hash',
    caller_verified: true,
    duration_us: 1,
  };
  const context = `X-Proofgate-Subject: client:billing\r\nX-Proofgate-Decision-Id: ${event.decision_id}\r\n`;
  const request = (line: string, headers: string, body = 'order') =>
    `${line} HTTP/1.1\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
  const usual = `${HOST}X-Tenant: t1\r\n${context}`;

  function verdict(bytes: string, decisions: readonly DecisionEvent[] = [event]): readonly SuccessKind[] {
    const connections = [{ bytes: () => Buffer.from(bytes, 'latin1') }];
    const signed = new Map([['hash', { caseName: 'case', transcript }]]);
    return judge({ signed, decisions, connections, requests: [] }).map(({ kind }) => kind);
  }

  it('takes what was signed and allowed for no success, whatever the case and default port of its host', () => {
    expect(verdict(request('POST /v1/orders', usual))).toEqual([]);
    expect(verdict(request('POST /v1/orders', usual.replace('api.shop', 'API.shop')))).toEqual([]);
    expect(verdict(request('POST /v1/orders', usual.replace('.example', '.example:80')))).toEqual([]);
    expect(verdict('')).toEqual([]);
  });

  it.each<[string, string, SuccessKind]>([
    ['another method', request('PUT /v1/orders', usual), 'altered'],
    ['another target', request('POST /v1/orders?', usual), 'altered'],
    ['another body', request('POST /v1/orders', usual, 'ordes'), 'altered'],
    ['no body', request('POST /v1/orders', usual, ''), 'altered'],
    ['another host', request('POST /v1/orders', usual.replace('api.', 'ap1.')), 'altered'],
    ['another port', request('POST /v1/orders', usual.replace('.example', '.example:81')), 'altered'],
    ['another signed header', request('POST /v1/orders', usual.replace('t1', 't2')), 'altered'],
    ['a repeated signed header', request('POST /v1/orders', `${usual}X-Tenant: t1\r\n`), 'altered'],
    ['no signed header', request('POST /v1/orders', `${HOST}${context}`), 'altered'],
    ['another subject', request('POST /v1/orders', usual.replace('billing', 'root')), 'context'],
    [
      'a subject twice',
      request('POST /v1/orders', `${usual}X-Proofgate-Subject: client:billing\r\n`),
      'context',
    ],
    ['no subject', request('POST /v1/orders', usual.replace(/X-Proofgate-Subject.*\r\n/, '')), 'context'],
    [
      'a client that was not verified',
      request('POST /v1/orders', `${usual}X-Proofgate-Client-Id: c\r\n`),
      'context',
    ],
    ['an unknown header of ours', request('POST /v1/orders', `${usual}X-Proofgate-Role: r\r\n`), 'context'],
    ['a header of ours with _', request('POST /v1/orders', `${usual}X_Proofgate_Subject: r\r\n`), 'context'],
    ['a rewriting header', request('POST /v1/orders', `${usual}X-Original-URL: /x\r\n`), 'context'],
    ['a credential', request('POST /v1/orders', `${usual}Authorization: Passport a.b.c\r\n`), 'context'],
    ['no decision', request('POST /v1/orders', `${HOST}X-Tenant: t1\r\n`), 'unverified'],
    ['a second request', request('POST /v1/orders', usual).repeat(2), 'unverified'],
  ])('detects %s', (_what, bytes, kind) => {
    expect(verdict(bytes)).toEqual([kind]);
  });

  it('detects a denied request', () => {
    expect(verdict(request('POST /v1/orders', usual), [{ ...event, outcome: 'denied' }])).toEqual([
      'unverified',
    ]);
  });
});

describe('answers over HTTP/2', () => {
  const id = '00000000-0000-4000-8000-000000000001';
  const decided = (hash: string): DecisionEvent => ({
    event: 'proofgate.decision',
    time: '2026-01-01T00:00:00.000Z',
    decision_id: id,
    outcome: 'allowed',
    transcript_sha256: hash,
    caller_verified: true,
    duration_us: 1,
  });
  const transcripts = openTranscripts('first', 'second');
  const frames = [1, 3].map(
    (stream, index) => ({ kind: 'headers', stream, lines: [[`{proof.${index + 1}}`, '']] }) as const,
  );
  const kindsOn = (stream: number, hash: string) =>
    misdeliveries(
      {
        name: 'case',
        template: { signed: transcripts },
        answers: { byStream: new Map([[stream, Buffer.from(`"x-proofgate-decision-id","${id}"`)]]) },
        frames,
      },
      [decided(hash)],
    ).map(({ kind }) => kind);

  it.each<[string, number, string, readonly SuccessKind[]]>([
    ['its own', 1, 'first', []],
    ['its own', 3, 'second', []],
    ["another stream's", 1, 'second', ['answer']],
    ["another stream's", 3, 'first', ['answer']],
    ["another caller's", 1, 'other', ['answer']],
  ])('%s on stream %i', (_whose, stream, hash, kinds) => {
    expect(kindsOn(stream, hash)).toEqual(kinds);
  });
});

describe('readings of the same bytes', () => {
  const head = `POST /a HTTP/1.1\r\n${HOST}`;
  const second = `GET /b HTTP/1.1\r\n${HOST}\r\n`;
  const targets = (bytes: string) =>
    LENIENT_READINGS.map((rules) =>
      readRequests(Buffer.from(bytes, 'latin1'), rules)
        .requests.map(({ target }) => target)
        .join(),
    );

  it.each([
    [
      'a length beside a coding',
      `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n${second}0\r\n\r\n`,
    ],
    ['two lengths', `${head}Content-Length: ${second.length}\r\nContent-Length: 0\r\n\r\n${second}`],
    ['a bare CR', `${head}X: a\rContent-Length: ${second.length}\r\n\r\n${second}`],
    [
      'a coding in disguise',
      `${head}Transfer_Encoding: chunked\r\nContent-Length: ${5 + second.length}\r\n\r\n0\r\n\r\n${second}`,
    ],
  ])('differ for %s, and the grammar refuses them', (_what, bytes) => {
    expect(new Set(targets(bytes)).size).toBeGreaterThan(1);
    expect(readRequests(Buffer.from(bytes, 'latin1'), STRICT).fault).toBeDefined();
  });

  it.each([
    ['a bare LF', `${head.replace('\r\n', '\n')}\r\n`],
    ['a folded line', `${head}X: a\r\n b\r\n\r\n`],
    ['a space before the colon', `${head}Content-Length : 0\r\n\r\n`],
    ['no Host', 'GET /a HTTP/1.1\r\n\r\n'],
    ['two Hosts', `${head}${HOST}\r\n`],
    ['a signed length', `${head}Content-Length: +0\r\n\r\n`],
    ['a length that is too large', `${head}Content-Length: 18446744073709551616\r\n\r\n`],
    ['a list of codings', `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['a chunk extension', `${head}Transfer-Encoding: chunked\r\n\r\n0;a\r\n\r\n`],
    ['a chunk that is too long', `${head}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n`],
    ['HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: h\r\n\r\n'],
    ['a space in the target', 'GET /a b HTTP/1.1\r\nHost: h\r\n\r\n'],
    ['an empty line first', `\r\n${head}\r\n`],
  ])('the grammar refuses %s', (_what, bytes) => {
    expect(readRequests(Buffer.from(bytes, 'latin1'), STRICT).fault).toBeDefined();
  });

  it('agree on what the grammar accepts', () => {
    const bytes = `${head}Transfer-Encoding: chunked\r\n\r\n1f\r\n${second.slice(0, 31)}\r\n0\r\n\r\n${second}`;
    expect(targets(bytes)).toEqual(LENIENT_READINGS.map(() => '/a,/b'));
    expect(readRequests(Buffer.from(bytes, 'latin1'), STRICT).fault).toBeUndefined();
  });
});
