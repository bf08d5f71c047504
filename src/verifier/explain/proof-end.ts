/**
 * Computes when the proofs of a captured request expire, for programs that must not accept a usable one.
 * Source: docs/design/protocol.md "Transcript".
 */

import type { CheckRequest } from '../../process/ext-authz/request-messages.ts';
import { DPOP_PROOF_SECONDS } from '../../protocol/dpop-proof.ts';
import { MAX_PROOF_TTL_SECONDS, MAX_SKEW_SECONDS } from '../../protocol/limits.ts';
import {
  DPOP_HEADER,
  HTTP_SIGNATURE_HEADER,
  HTTP_SIGNATURE_INPUT_HEADER,
  SIGNATURE_HEADER,
  TRANSCRIPT_HEADER,
} from '../../protocol/wire-names.ts';
import { headerLinesOf } from './header-lines.ts';

/**
 * The second from which no verifier accepts a proof of this request, with any skew of a site. Infinity when that is
 * unknown, as for an unreadable transcript. Undefined without a signature, or without signed text.
 */
export function proofEndSeconds(check: CheckRequest): number | undefined {
  const lines = headerLinesOf(check);
  // A gateway may have joined several lines.
  const valuesOf = (wanted: string) =>
    lines.filter(([name]) => name === wanted).flatMap(([, value]) => value.split(/[\s,]+/).filter(Boolean));
  const transcripts = valuesOf(SIGNATURE_HEADER).length === 0 ? [] : valuesOf(TRANSCRIPT_HEADER);
  const inputs =
    valuesOf(HTTP_SIGNATURE_HEADER).length === 0 ? [] : linesOf(lines, HTTP_SIGNATURE_INPUT_HEADER);
  const ends = [
    ...transcripts.map(endOf),
    ...inputs.filter(isOurs).map(endOfInput),
    ...valuesOf(DPOP_HEADER).map(endOfDpop),
  ];
  return ends.length === 0 ? undefined : Math.max(...ends) + MAX_SKEW_SECONDS;
}

function linesOf(lines: ReturnType<typeof headerLinesOf>, wanted: string): readonly string[] {
  return lines.filter(([name]) => name === wanted).map(([, value]) => value);
}

/** An HTTP message signature for any Auth Site. */
function isOurs(input: string): boolean {
  return input.includes('"proofgate/');
}

function endOfInput(input: string): number {
  const ends = [...input.matchAll(/;\s*expires=([0-9]{1,15})/g)].map(([, seconds]) => Number(seconds));
  return ends.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...ends);
}

/** Infinity for one that cannot be read: a proxy may have damaged only this copy. */
function endOfDpop(jws: string): number {
  try {
    const { iat } = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
    return typeof iat === 'number' ? iat + DPOP_PROOF_SECONDS : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Also reads transcripts that depart from the format, because a proxy may have damaged only this copy. */
function endOf(transcript: string): number {
  const text = Buffer.from(transcript, 'base64url').toString('latin1');
  const latest = (line: string) =>
    Math.max(
      ...[...text.matchAll(new RegExp(`^${line}=([0-9]{1,15})$`, 'gm'))].map(([, value]) => Number(value)),
    );
  const ends = [latest('expires-at'), latest('issued-at') + MAX_PROOF_TTL_SECONDS];
  return ends.every(Number.isFinite) ? Math.min(...ends) : Number.POSITIVE_INFINITY;
}
