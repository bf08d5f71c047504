/** Runs the vectors against the ext_authz enforcement point: real messages over a real connection. */
import { afterAll, describe, expect, it } from '@jest/globals';
import {
  type ExtAuthzServer,
  openExtAuthzServer,
} from '../../src/enforcement/ext-authz-grpc/ext-authz-server.ts';
import type { CheckResponse } from '../../src/process/ext-authz/response-messages.ts';
import { mergedCheckRequest, rawCheckRequest } from '../support/fixtures/check-request.ts';
import { type CheckClient, openCheckClient } from '../support/harness/check-client.ts';
import { type Answered, DENIED, wireRequestOf } from '../support/protocol/published-vectors.ts';
import { type Bench, createBench, storeOf } from './bench.ts';
import { describeVectors } from './conformance-suite.ts';

interface Fixture {
  readonly client: CheckClient;
  readonly point: ExtAuthzServer;
}

let fixture: Promise<Fixture> | undefined;

async function openFixture({ metrics, verifier }: Bench): Promise<Fixture> {
  const point = await openExtAuthzServer({
    verifier,
    metrics,
    bodyMode: 'buffered',
    listen: '127.0.0.1:0',
    maxMessageBytes: 1_000_000,
  });
  return { point, client: openCheckClient(point.address) };
}

async function closeFixture(opening: Promise<Fixture> | undefined): Promise<void> {
  const opened = await opening;
  opened?.client.close();
  await opened?.point.drain(1000);
}

afterAll(() => closeFixture(fixture));

describeVectors('ext_authz over gRPC', async (request, bench) => {
  fixture ??= openFixture(bench);
  const { client } = await fixture;
  return await answerWhenHeard(() => client.check(rawCheckRequest(wireRequestOf(request))));
});

/** A process that was paused answers `overloaded`, which consumes nothing: the check is repeated. */
async function answerWhenHeard(check: () => Promise<CheckResponse>): Promise<Answered> {
  for (let triesLeft = 10; ; triesLeft -= 1) {
    const answer = answerOf(await check());
    const isOverloaded = 'detail' in answer && answer.detail === 'overloaded';
    if (!isOverloaded || triesLeft === 0) return answer;
  }
}

function answerOf({ denied_response, ok_response, status }: CheckResponse): Answered {
  if (status?.code === 0 && ok_response !== undefined && denied_response === undefined) {
    const set = (ok_response.headers ?? []).map(
      ({ header }) => [header?.key ?? '', textOfHeader(header)] as const,
    );
    const names = set.map(([name]) => name);
    expect(new Set(names).size).toBe(names.length);
    const { 'x-proofgate-decision-id': decisionId, ...upstream_headers } = Object.fromEntries(set);
    expect(decisionId).toMatch(/^[0-9a-f-]{36}$/);
    const removed_headers = [...(ok_response.headers_to_remove ?? [])]
      .map((name) => name.toLowerCase())
      .sort();
    return { outcome: 'allowed', upstream_headers, removed_headers };
  }
  if (status === undefined || status.code === 0 || denied_response === undefined)
    return { outcome: 'neither' };
  const problem: { readonly reason: string; readonly detail?: string; readonly status: number } = JSON.parse(
    denied_response.body,
  );
  expect(denied_response.status.code).toBe(problem.status);
  const { detail, reason } = problem;
  return {
    outcome: 'denied',
    reason,
    ...(detail === undefined ? {} : { detail }),
    status: problem.status,
  } as Answered;
}

function textOfHeader(header: { readonly value?: string; readonly raw_value?: Buffer } | undefined): string {
  return header?.value || (header?.raw_value?.toString('latin1') ?? '');
}

describe('where Envoy joins the lines of a header', () => {
  const bench = createBench();
  let merged: Promise<Fixture> | undefined;
  afterAll(() => closeFixture(merged));

  /** An ext_authz message carries less detail, so it may deny more than a vector says, and never less. */
  it('lets through nothing that a vector denies', async () => {
    merged ??= openFixture(bench);
    const { client } = await merged;
    const letThrough: string[] = [];
    for (const { bundle, name, now: nowSeconds, realtime_staleness_seconds, request } of DENIED) {
      const store = storeOf(null, nowSeconds);
      await bench.set({ bundle, nowSeconds, realtimeStalenessSeconds: realtime_staleness_seconds, store });
      const answer = answerOf(await client.check(mergedCheckRequest(wireRequestOf(request))));
      if (answer.outcome !== 'denied') letThrough.push(name);
    }
    expect(letThrough).toEqual([]);
  });
});
