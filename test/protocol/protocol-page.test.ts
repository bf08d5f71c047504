/** Tests that docs/design/protocol.md matches the code: its example line by line, its table against the reasons. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { REASONS, STATUS_OF_REASON } from '../../src/protocol/reasons.ts';
import { ed25519KeyOfSeed } from '../support/protocol/fixtures.ts';
import { SIGNING } from '../support/protocol/published-vectors.ts';
import type { SigningVector } from '../vectors/make/format.ts';
import { expectVectorToHold } from './request-vectors.ts';

const PAGE = readFileSync(new URL('../../docs/design/protocol.md', import.meta.url), 'utf8');

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

/** The published vector that the page shows. */
const [VECTOR] = SIGNING;
if (VECTOR === undefined) throw new Error('no vector');
const vector = VECTOR;
const issuer = ed25519KeyOfSeed(block('issuer-key'));
const holder = ed25519KeyOfSeed(block('holder-key'));

/** A request as it goes over the wire, but for its line ends. */
function parseRequest(text: string): Omit<SigningVector['request'], 'scheme'> {
  const [head = '', body = ''] = text.split('\n\n');
  const [requestLine = '', ...lines] = head.split('\n');
  const [method = '', target = ''] = requestLine.split(' ');
  const headers = lines.map((line) => headerOf(line));
  const valueOfHeader = (wanted: string) => headers.find(([name]) => name === wanted)?.[1] ?? '';
  expect(valueOfHeader('Content-Length')).toBe(String(Buffer.byteLength(body)));
  return {
    method,
    authority: valueOfHeader('Host'),
    target,
    headers: headers.filter(([name]) => !['Host', 'Content-Length'].includes(name)),
    body_base64: Buffer.from(body).toString('base64'),
  };
}

function headerOf(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(': ');
  return [line.slice(0, colon), line.slice(colon + 2)];
}

describe('the worked example', () => {
  it('has the blocks that are checked here, and no other', () => {
    expect([...BLOCKS.keys()]).toEqual([
      ...['request', 'issuer-key', 'holder-key', 'holder-jwk', 'holder-thumbprint', 'header', 'claims'],
      ...['signing-input-sha256', 'passport', 'transcript', 'transcript-sha256', 'signature', 'headers'],
      'replay-identifier',
    ]);
  });

  it('is the first signing vector', () => {
    expect({ scheme: 'https', ...parseRequest(block('request')) }).toEqual(vector.request);
    expect(block('header')).toBe(vector.passport.header);
    expect(block('claims')).toBe(vector.passport.claims);
    expect(block('signing-input-sha256')).toBe(vector.passport.signing_input_sha256);
    expect(block('passport')).toBe(vector.passport.jws);
    expect(`${block('transcript')}\n`).toBe(vector.transcript);
    expect(block('transcript-sha256')).toBe(vector.transcript_sha256);
    expect(block('signature')).toBe(vector.signature);
    const headers = Object.entries(vector.headers).map(([name, value]) => `${name}: ${value}`);
    expect(block('headers').split('\n')).toEqual(headers);
    expect(block('replay-identifier')).toBe(vector.replay_identifier);
    expect(PAGE).toContain(
      `The Auth Site is \`${vector.auth_site}\`. The route is \`${vector.route.route_id}\``,
    );
  });

  it('follows from its keys, its claims and its request', () => {
    expectVectorToHold(vector, issuer, holder);
  });

  it('names the holder key', () => {
    expect(JSON.parse(block('holder-jwk'))).toEqual(holder.publicKey.jwk);
    expect(block('holder-thumbprint')).toBe(holder.publicKey.thumbprint);
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
