/**
 * Runs cases against an enforcement point, several at a time, with well-behaved callers between them, and judges everything
 * that the upstream, the verifier and the callers saw.
 */

import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { attackHttp2 } from '../../smuggling/http2/attack.ts';
import { type Exchange, misdeliveries, VICTIM } from '../../smuggling/oracle/misdeliveries.ts';
import type { EnforcementPoint } from '../points/enforcement-point.ts';
import { derivedKeyCaller } from '../site/callers.ts';
import { AUTHORITY } from '../site/routes.ts';
import type { Site } from '../site/site.ts';
import { waitFor } from '../wait.ts';
import type { Http1Case, Http2Case, SignedPlan } from './cases.ts';
import { attackHttp1 } from './http1-attack.ts';
import { judge, type KnownRequest, type Success } from './judge.ts';
import type { RecordingUpstream } from './recording-upstream.ts';
import { openTemplate } from './template.ts';

export interface CampaignResult {
  readonly cases: number;
  readonly successes: readonly Success[];
  /** Cases whose proof was allowed: they were forwarded, as signed or with a success of the attacker. */
  readonly allowedCases: ReadonlySet<string>;
  readonly victims: { readonly sent: number; readonly answered: number };
}

export interface CampaignTarget {
  readonly site: Site;
  readonly point: Pick<EnforcementPoint, 'address' | 'http2Address' | 'upstream' | 'decisions'>;
  /** The point's upstream when it records bytes; undefined for middleware. */
  readonly recording?: RecordingUpstream | undefined;
  readonly upstreamHost?: string | undefined;
  /** How long the point may need to serve again after the last case. Default 10 s. */
  readonly servesWithinMs?: number;
  /** Cases at a time. Default 12. */
  readonly lanes?: number;
  /** A well-behaved caller comes after this many cases. Default 1. */
  readonly casesBetweenVictims?: number;
}

export async function runCampaign(
  target: CampaignTarget,
  cases: readonly (Http1Case | Http2Case)[],
): Promise<CampaignResult> {
  const { casesBetweenVictims = 1, lanes = 12 } = target;
  target.point.upstream.clear();
  const exchanges: Exchange[] = [];
  const victims = { sent: 0, answered: 0 };
  const waiting = [...cases.entries()];
  const runLane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      exchanges.push(await attack(target, next[1], `c${next[0]}`));
      if (next[0] % casesBetweenVictims !== 0) continue;
      victims.sent += 1;
      const victim = await askAsVictim(target, `v${next[0]}`);
      if (victim.name === VICTIM) victims.answered += 1;
      exchanges.push(victim);
    }
  };
  await Promise.all(Array.from({ length: lanes }, runLane));
  const outage = await stillServes(target, exchanges);
  return resultOf(target, { cases, exchanges, victims, outage });
}

async function attack(target: CampaignTarget, one: Http1Case | Http2Case, id: string): Promise<Exchange> {
  const { point, site } = target;
  if ('frames' in one) {
    const template = openTemplate(site, derivedKeyCaller(site), one.signs, id);
    const answers = await attackHttp2(point.http2Address ?? point.address, one, template);
    return { name: one.name, template, answers, frames: one.frames };
  }
  const last: SignedPlan = { route: 'readOrder', target: '/v1/orders/last?case={id}' };
  const template = openTemplate(site, derivedKeyCaller(site), [...one.signs, last], id);
  const number = one.signs.length + 1;
  const text = `GET /v1/orders/last?case=${id} HTTP/1.1\r\nHost: ${AUTHORITY}\r\n{proof.${number}}Connection: close\r\n\r\n`;
  const answers = await attackHttp1(point.address, one, template, template.fill(text));
  return { name: one.name, template, answers };
}

/** A victim whose request may have been forwarded, although no answer came: on a busy machine the time runs out. */
const UNANSWERED_VICTIM = `${VICTIM} without an answer`;

async function askAsVictim({ point, site }: CampaignTarget, id: string): Promise<Exchange> {
  const target = `/v1/orders/victim?case=${id}`;
  const caller = derivedKeyCaller(site, 'dk_plain');
  const template = openTemplate(site, caller, [{ route: 'readOrder', target }], id);
  const headers = [...(template.proofLines('{proof}') ?? []), ['connection', 'close'] as const];
  const request = { method: 'GET', target, authority: AUTHORITY, headers };
  const response = await http1Client(point.address)
    .send(request)
    .catch(() => undefined);
  if (response?.status !== 200)
    return { name: UNANSWERED_VICTIM, template, answers: { byStream: new Map() } };
  return { name: VICTIM, template, answers: { byStream: new Map([[0, response.body]]) } };
}

async function stillServes(target: CampaignTarget, exchanges: Exchange[]): Promise<readonly Success[]> {
  try {
    await waitFor(
      'the point to serve',
      async () => {
        const victim = await askAsVictim(target, 'after');
        exchanges.push(victim);
        return victim.name === VICTIM;
      },
      target.servesWithinMs,
    );
    return [];
  } catch (error) {
    return [{ kind: 'outage', what: error instanceof Error ? error.message : String(error) }];
  }
}

interface Collected extends Pick<CampaignResult, 'victims'> {
  readonly cases: readonly unknown[];
  readonly exchanges: readonly Exchange[];
  readonly outage: readonly Success[];
}

async function resultOf(
  { point, recording, upstreamHost }: CampaignTarget,
  { cases, exchanges, outage, victims }: Collected,
): Promise<CampaignResult> {
  const signed = new Map<string, KnownRequest>(
    exchanges.flatMap(({ name, template }) =>
      template.signed.map(({ transcript, transcriptSha256 }) => [
        transcriptSha256,
        { caseName: name, transcript },
      ]),
    ),
  );
  const decisions = await point.decisions();
  const allowed = decisions.filter(({ outcome }) => outcome === 'allowed');
  const requests = recording === undefined ? point.upstream.requests : [];
  const judged = judge({
    signed,
    decisions,
    requests,
    upstreamHost,
    ...(recording && { connections: recording.connections }),
  });
  const allowedCases = new Set(
    allowed.flatMap(({ transcript_sha256 }) => signed.get(transcript_sha256 ?? '')?.caseName ?? []),
  );
  const misdelivered = exchanges.flatMap((exchange) => misdeliveries(exchange, allowed));
  return {
    cases: cases.length,
    successes: [...judged, ...misdelivered, ...outage],
    allowedCases,
    victims,
  };
}
