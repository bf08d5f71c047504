/** docs/protocol.md says what the code does: its example is checked line by line, its table against the reasons. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { REASONS, STATUS_OF_REASON } from '../../src/protocol/reasons.ts';
import { parseTranscript } from '../../src/protocol/transcript.ts';
import { replayIdentifier } from '../../src/verifier/replay/identifier.ts';
import { ed25519KeyOfSeed } from './fixtures.ts';
import { expectVectorToHold, type RequestVector } from './request-vectors.ts';

const PAGE = readFileSync(new URL('../../docs/protocol.md', import.meta.url), 'utf8');

const BLOCKS: ReadonlyMap<string, string> = new Map(
  [...PAGE.matchAll(/^```\w+ example-(\S+)\n([\s\S]*?)\n```$/gm)].map(([, name = '', text = '']) => [
    name,
    text,
  ]),
);

function block(name: string): string {
  const text = BLOCKS.get(name);
  if (text === undefined) throw new Error(`the page has no block example-${name}`);
  return text;
}

const issuer = ed25519KeyOfSeed(block('issuer-key'));
const holder = ed25519KeyOfSeed(block('holder-key'));
const transcriptText = `${block('transcript')}\n`;

/** A request as it goes over the wire, but for its line ends. */
function parseRequest(text: string): RequestVector['request'] {
  const [head = '', body = ''] = text.split('\n\n');
  const [requestLine = '', ...lines] = head.split('\n');
  const [method = '', target = ''] = requestLine.split(' ');
  const headers = new Map(lines.map((line) => headerOf(line)));
  expect(headers.get('content-length')).toBe(String(Buffer.byteLength(body)));
  return {
    method,
    scheme: 'https',
    authority: headers.get('host') ?? '',
    target,
    headers: Object.fromEntries([...headers].filter(([name]) => !['host', 'content-length'].includes(name))),
    body_base64url: Buffer.from(body).toString('base64url'),
  };
}

function headerOf(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(': ');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)];
}

describe('the worked example', () => {
  it('has the blocks that are checked here, and no other', () => {
    expect([...BLOCKS.keys()]).toEqual([
      ...['request', 'issuer-key', 'holder-key', 'holder-jwk', 'holder-thumbprint', 'header', 'claims'],
      ...['passport', 'transcript', 'signature', 'headers', 'replay-identifier'],
    ]);
  });

  it('follows from its keys, its claims and its request', () => {
    const vector: RequestVector = {
      name: 'the worked example',
      passport_key: 'issuer',
      holder_key: 'holder',
      passport_header: block('header'),
      passport_claims: block('claims'),
      passport: block('passport'),
      transcript: transcriptText,
      signature: block('signature'),
      auth_site: 'shop-eu',
      route: { route_id: 'orders-create', audience: 'https://api.shop.example', body: 'bound' },
      request: parseRequest(block('request')),
    };
    expectVectorToHold(vector, issuer, holder);
  });

  it('names the holder key', () => {
    expect(JSON.parse(block('holder-jwk'))).toEqual(holder.publicKey.jwk);
    expect(block('holder-thumbprint')).toBe(holder.publicKey.thumbprint);
  });

  it('puts the three headers together', () => {
    expect(block('headers').split('\n')).toEqual([
      `Authorization: Passport ${block('passport')}`,
      `X-Proofgate-Transcript: ${Buffer.from(transcriptText).toString('base64url')}`,
      `X-Proofgate-Signature: ${block('signature')}`,
    ]);
  });

  it('gives the replay identifier', () => {
    const transcript = parseTranscript(Buffer.from(transcriptText));
    expect(block('replay-identifier')).toBe(
      replayIdentifier('shop-eu', holder.publicKey.thumbprint, transcript?.jti ?? ''),
    );
  });
});

/** Rows of the decision table: reasons and status. */
const ROWS = [...PAGE.matchAll(/^\|(?: [1-6])? \|[^|]*\|([^|]*)\|[^|]*\| \**(\d{3})\** \|$/gm)];

describe('the decision table', () => {
  it('gives each reason the status that it has', () => {
    const statuses = new Map<string, Set<number>>();
    for (const [, reasons = '', status = ''] of ROWS) {
      for (const [, reason = ''] of reasons.matchAll(/`([a-z_]+)`/g)) {
        statuses.set(reason, (statuses.get(reason) ?? new Set()).add(Number(status)));
      }
    }
    const expected = REASONS.filter((reason) => reason !== 'verifier_unavailable').map(
      (reason) => [reason, new Set<number>([STATUS_OF_REASON[reason]])] as const,
    );
    // The wrong audience alone has another status than its reason.
    expect(statuses).toEqual(new Map(expected).set('invalid_request_proof', new Set([401, 403])));
    expect(PAGE).toContain('`verifier_unavailable`');
  });
});
