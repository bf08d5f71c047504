/**
 * Fills the markers of a case in with what is only known when it runs. `{proof}` and `{proof.2}` are the header lines of the
 * first and second signed request, `{credentials}` those without signed headers; `{body}`, `{length}`, `{length+1}`, `{hex}` are about its body; `{id}` names the run.
 */
import { createHash } from 'node:crypto';
import { formatTranscript, type Transcript } from '../../../src/protocol/transcript.ts';
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';
import type { Caller } from '../site/callers.ts';
import { ROUTES } from '../site/routes.ts';
import { sign } from '../site/signed-request.ts';
import type { Site } from '../site/site.ts';
import type { SignedPlan } from './cases.ts';

/** A request that was signed for a case. */
export interface SignedFacts {
  /** Hash of the transcript, as audit events have it. */
  readonly transcriptSha256: string;
  readonly transcript: Transcript;
}

export interface Template {
  readonly signed: readonly SignedFacts[];
  fill(text: string): string;
  /** The lines of one proof, for HTTP/2; undefined when the name is no marker. */
  proofLines(marker: string): readonly HeaderLine[] | undefined;
}

const MARKER = /\{(proof|credentials|body|length|hex|id)(?:\.([0-9]))?([+-][0-9]+)?\}/g;

export function openTemplate(site: Site, caller: Caller, plans: readonly SignedPlan[], id: string): Template {
  const bodies: string[] = [];
  const lines: (readonly HeaderLine[])[] = [];
  const signed: SignedFacts[] = [];
  const at = <T>(values: readonly T[], number: string | undefined): T => {
    const value = values[Number(number ?? '1') - 1];
    if (value === undefined) throw new Error(`no signed request ${number ?? '1'} for a marker`);
    return value;
  };
  const fill = (text: string): string =>
    text.replace(MARKER, (_, name: string, number: string | undefined, add: string | undefined) => {
      if (name === 'id') return id;
      if (name === 'proof') return linesText(at(lines, number));
      // The proof without the headers that it signs.
      if (name === 'credentials') return linesText(at(lines, number).slice(0, 3));
      const body = at(bodies, number);
      if (name === 'body') return body;
      const length = body.length + Number(add ?? 0);
      return name === 'hex' ? length.toString(16) : String(length);
    });
  // The last first: the body of an earlier request may contain the proof of a later one.
  for (let index = plans.length - 1; index >= 0; index -= 1) {
    const plan = plans[index];
    if (plan === undefined) continue;
    const body = fill(plan.body ?? '');
    const made = sign(site, {
      caller,
      route: ROUTES[plan.route],
      ...(plan.target === undefined ? {} : { target: fill(plan.target) }),
      ...(plan.body === undefined ? {} : { body: Buffer.from(body, 'latin1') }),
      ...(plan.headers === undefined ? {} : { signedHeaders: plan.headers }),
    });
    bodies[index] = body;
    lines[index] = made.request.headers ?? [];
    signed[index] = {
      transcript: made.transcript,
      transcriptSha256: createHash('sha256').update(formatTranscript(made.transcript)).digest('base64url'),
    };
  }
  return {
    signed,
    fill,
    proofLines: (marker) => {
      const number = /^\{proof(?:\.([0-9]))?\}$/.exec(marker);
      return number === null ? undefined : at(lines, number[1]);
    },
  };
}

function linesText(lines: readonly HeaderLine[]): string {
  return lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
}
