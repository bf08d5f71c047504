/** Reads the published files as a third party would: strict JSON, validated against the schema, no unknown members. */
import { readFileSync } from 'node:fs';
import { Compile } from 'typebox/schema';
import { parseStrictJson } from '../../../src/protocol/strict-json.ts';
import type { BodyState } from '../../../src/verifier/decision/facts/request-facts.ts';
import type {
  BundleVector,
  DpopVector,
  Expected,
  HttpMessageVector,
  KeyVector,
  ReceivedRequest,
  ReplayVector,
  RequestVector,
  SigningVector,
} from '../../vectors/make/format.ts';
import { applyPatch } from '../../vectors/make/json-patch.ts';
import type { WireRequest } from '../fixtures/signed-request.ts';

export const FILE_NAMES = [
  'keys.json',
  'bundles.json',
  'signing.json',
  'http-message-signatures.json',
  'dpop.json',
  'requests-allowed.json',
  'requests-denied.json',
  'replay.json',
  'targets.json',
] as const;
export type FileName = (typeof FILE_NAMES)[number];

const schema = Compile(JSON.parse(textOf('schema.json')));

export function textOf(name: string): string {
  return readFileSync(new URL(`../../vectors/${name}`, import.meta.url), 'utf8');
}

export function fitsSchema(value: unknown): boolean {
  return schema.Check(value);
}

/** @throws for a file that names a member twice, or that the schema does not know in full. */
export function readVectors(name: FileName): unknown {
  const value = parseStrictJson(textOf(name));
  if (!fitsSchema(value)) throw new Error(`${name} does not fit schema.json`);
  return value;
}

// The schema has been checked, and says the same as these types.
export const KEYS = (readVectors('keys.json') as { readonly keys: readonly KeyVector[] }).keys;
export const SIGNING = (readVectors('signing.json') as { readonly signing: readonly SigningVector[] })
  .signing;
export const HTTP_MESSAGES = (
  readVectors('http-message-signatures.json') as { readonly http_messages: readonly HttpMessageVector[] }
).http_messages;
export const DPOP = (readVectors('dpop.json') as { readonly dpop: readonly DpopVector[] }).dpop;
export const ALLOWED = requestsOf('requests-allowed.json');
export const DENIED = requestsOf('requests-denied.json');
export const REPLAY = (readVectors('replay.json') as { readonly replay: readonly ReplayVector[] }).replay;
export const BUNDLES = (readVectors('bundles.json') as { readonly bundles: readonly BundleVector[] }).bundles;

function requestsOf(name: FileName): readonly RequestVector[] {
  return (readVectors(name) as { readonly requests: readonly RequestVector[] }).requests;
}

/** The content of a bundle, its patch applied. */
export function contentOf(name: string): unknown {
  const found = BUNDLES.find((bundle) => bundle.name === name);
  if (found === undefined) throw new Error(`no bundle ${name}`);
  return 'content' in found ? found.content : applyPatch(contentOf(found.from), found.patch);
}

export function wireRequestOf({ body, headers, ...line }: ReceivedRequest): WireRequest {
  return { ...line, headers: headers.map(([name, value]) => ({ name, value })), body: bodyOf(body) };
}

function bodyOf(body: ReceivedRequest['body']): Exclude<BodyState, { kind: 'hashed' }> {
  return body.state === 'exact'
    ? { kind: 'exact', bytes: Buffer.from(body.base64, 'base64') }
    : { kind: body.state };
}

/** The answer of an enforcement point, in the terms of a vector. */
export type Answered = Expected | { readonly outcome: 'neither' };

/** Only the vector states `step`; no answer contains it. */
export function withoutStep(expected: Expected): object {
  if (expected.outcome === 'allowed') return expected;
  const { step: _, ...denial } = expected;
  return denial;
}
