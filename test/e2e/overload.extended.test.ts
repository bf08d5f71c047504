/**
 * Sends ten times as many Checks at once as the verifier can decide within their deadline. Each is answered, denied ones
 * consume nothing, and the others are allowed. They go straight to the gRPC port, because Envoy would hold them back.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { rawCheckRequest } from '../support/fixtures/check-request.ts';
import {
  CHECK_PATH,
  decodeCheckResponse,
  encodeCheckRequest,
  outcomeOfResponse,
} from '../support/harness/check-client.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { ROUTES } from '../support/site/routes.ts';
import { signedRequest } from '../support/site/signed-request.ts';
import { useSite } from '../support/site/site-fixture.ts';
import type { VerifierProcess } from '../support/site/verifier.ts';
import { remainingMs } from '../support/wait.ts';

const CONNECTIONS = 8;
const PATIENCE_MS = 200;
const ROUNDS = 3;
const WAIT_MS = 60_000;

const fixture = useSite('suite');
let verifier: VerifierProcess;
let sessions: readonly ClientHttp2Session[];
beforeAll(async () => {
  verifier = await fixture.verifier({ listen: 'tcp' });
  const { address } = verifier;
  if (address.kind !== 'tcp') throw new Error('not on TCP');
  sessions = Array.from({ length: CONNECTIONS }, () => connect(`http://${address.host}:${address.port}`));
  await Promise.all(sessions.map((session) => once(session, 'remoteSettings')));
});
afterAll(() => {
  for (const session of sessions) session.destroy();
});

/** As it goes over the wire: gRPC's head of five bytes, then the message. */
function newCheck(): Buffer {
  const {
    authority,
    headers = [],
    method,
    target,
  } = signedRequest(fixture.site, {
    caller: derivedKeyCaller(fixture.site),
    route: ROUTES.readOrder,
  });
  const lines = headers.map(([name, value]) => ({ name, value }));
  const wire = { method, target, authority, scheme: 'http', headers: lines, body: { kind: 'none' } } as const;
  const message = encodeCheckRequest(rawCheckRequest(wire));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

/** `allowed`, a denial, or `grpc 4` for a deadline that has passed. */
async function ask(check: Buffer, at: number, timeout?: string): Promise<string> {
  const session = sessions[at % CONNECTIONS];
  if (session === undefined) throw new Error('no connection');
  const stream = session.request({
    ':method': 'POST',
    ':path': CHECK_PATH,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...(timeout !== undefined && { 'grpc-timeout': timeout }),
  });
  const chunks: Buffer[] = [];
  let grpcStatus = '';
  const note = (headers: Record<string, unknown>) => {
    grpcStatus = String(headers['grpc-status'] ?? grpcStatus);
  };
  stream.on('response', note);
  stream.on('trailers', note);
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.end(check);
  await once(stream, 'close', { signal: AbortSignal.timeout(remainingMs(WAIT_MS)) });
  const body = Buffer.concat(chunks);
  return body.byteLength === 0
    ? `grpc ${grpcStatus}`
    : outcomeOfResponse(decodeCheckResponse(body.subarray(5)));
}

const ALLOWED = 'allowed';
const OVERLOADED = 'verifier_unavailable/overloaded 503';
const LATE = 'grpc 4';

/** Resident bytes; what a process has at most is what counts here. */
function residentBytes(): number {
  const status = readFileSync(`/proc/${verifier.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

async function checksPerSecond(): Promise<number> {
  const checks = Array.from({ length: 1_000 }, newCheck);
  const startedMs = performance.now();
  const outcomes = new Set<string>();
  // Some at a time, so that none has to wait for long.
  for (let first = 0; first < checks.length; first += 40) {
    const some = checks.slice(first, first + 40);
    for (const outcome of await Promise.all(some.map((check, at) => ask(check, at)))) outcomes.add(outcome);
  }
  expect(outcomes).toEqual(new Set([ALLOWED]));
  return 1_000 / ((performance.now() - startedMs) / 1_000);
}

it('answers every Check of ten times too many, uses nothing of those that it refuses, and goes on', async () => {
  await checksPerSecond();
  const perSecond = await checksPerSecond();
  // At most as many as the ext_authz server accepts at a time.
  const burst = Math.min(8_000, Math.ceil(perSecond * (PATIENCE_MS / 1_000) * 10));
  const before = residentBytes();
  const counts = new Map<string, number>();
  const refused: Buffer[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const checks = Array.from({ length: burst }, newCheck);
    const outcomes = await Promise.all(checks.map((check, at) => ask(check, at, `${PATIENCE_MS}m`)));
    expect(new Set([ALLOWED, OVERLOADED, LATE, ...outcomes])).toEqual(new Set([ALLOWED, OVERLOADED, LATE]));
    const allowed = outcomes.filter((outcome) => outcome === ALLOWED).length;
    // Each round allows some Checks, though not most.
    expect(allowed).toBeGreaterThan(0);
    expect(allowed).toBeLessThan(burst);
    for (const [at, outcome] of outcomes.entries()) {
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      const check = checks[at];
      if (outcome !== ALLOWED && check !== undefined) refused.push(check);
    }
  }
  process.stderr.write(
    `overload: ${Math.round(perSecond)} Checks a second, ${ROUNDS} times ${burst} at once with ${PATIENCE_MS} ms each: ${JSON.stringify([...counts])}\n`,
  );
  expect(counts.get(OVERLOADED)).toBeGreaterThan(0);
  // None of them has had its jti used: sent again, one after the other, each is let through.
  const again = refused.filter((_, at) => at % 10 === 0).slice(0, 500);
  for (const [at, check] of again.entries()) expect([at, await ask(check, at)]).toEqual([at, ALLOWED]);
  // The audit trail agrees with the answers that the callers got.
  const events = await verifier.auditEvents();
  const recorded = events.filter(({ outcome }) => outcome === 'allowed').length;
  expect(recorded).toBe(2_000 + (counts.get(ALLOWED) ?? 0) + again.length);
  expect(residentBytes() - before).toBeLessThan(400 * 1024 * 1024);
});
