/**
 * Reads the output of `sign --format json`: the credentials of one request. Its transcript identifies the signed
 * request. Source: docs/operate/explain.md "The input".
 */
import { isJsonObject, type JsonObject } from '../../protocol/strict-json.ts';
import {
  decodeTranscript,
  NOT_BOUND,
  parseTranscript,
  type SignedHeader,
  type Transcript,
} from '../../protocol/transcript.ts';
import {
  AUTHORIZATION_HEADER,
  PASSPORT_HEADER,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../protocol/wire-names.ts';
import type { BodyState } from '../decision/facts/request-facts.ts';
import { JsonFields, requestInvalid } from './json-fields.ts';

const CREDENTIALS = [AUTHORIZATION_HEADER, PASSPORT_HEADER, TRANSCRIPT_HEADER, SIGNATURE_HEADER];

export interface SignOutput {
  readonly credentials: readonly SignedHeader[];
  readonly transcript: Transcript;
  readonly body: BodyState;
}

/** Whether the members are credentials, and nothing else. */
export function isSignOutput(value: unknown): value is JsonObject {
  if (!isJsonObject(value)) return false;
  const names = Object.keys(value).map((name) => name.toLowerCase());
  return names.includes(TRANSCRIPT_HEADER) && names.every((name) => CREDENTIALS.includes(name));
}

/** @throws ExplainInputError `request_invalid` */
export function readSignOutput(value: JsonObject): SignOutput {
  const fields = new JsonFields(value, '');
  const credentials = fields.names.map((name) => ({
    name: name.toLowerCase(),
    value: fields.text(name) ?? '',
  }));
  const sent = credentials.find(({ name }) => name === TRANSCRIPT_HEADER);
  const bytes = decodeTranscript(sent?.value ?? '');
  const hasPassportHeader = credentials.some(({ name }) => name === PASSPORT_HEADER);
  const passportHeader = hasPassportHeader ? PASSPORT_HEADER : AUTHORIZATION_HEADER;
  const transcript = bytes && parseTranscript(bytes, passportHeader);
  if (transcript === undefined) {
    throw requestInvalid('/X-Proofgate-Transcript', 'is no transcript, so it names no request');
  }
  const { contentSha256: sha256 } = transcript;
  return {
    credentials,
    transcript,
    body: sha256 === NOT_BOUND ? { kind: 'none' } : { kind: 'hashed', sha256 },
  };
}
