/**
 * Tests the shipped `proofgate enroll` against the real Control through a proxy that loses, cuts, delays, doubles and
 * throttles: every fault at every request. The command ends with the one right key or with a clear error, and a repetition ends
 * with the key. Control never holds more than one enrollment and one key for a key pair.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ControlClient } from '../../../src/cli/ctl/client/control-client.ts';
import { OperatorError } from '../../../src/cli/ctl/client/operator-error.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import { ControlStage } from '../../support/control/control-fixture.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import {
  type Exchange,
  FAULTS,
  type Fault,
  type LossyProxy,
  startLossyProxy,
} from '../../support/harness/lossy-proxy.ts';
import { type CommandResult, errorCode } from '../../support/harness/proofgate-command.ts';

/** Where the fault occurs: at one request, or at each submission. */
const PLACES = ['challenge', 'submission', 'first poll', 'each submission'] as const;
type FaultPlace = (typeof PLACES)[number];

/** Runs at a time, each through a proxy of its own. */
const LANES = 6;
/** Errors with which `proofgate enroll` asks to be run again. */
const CLEAR_ERRORS = [
  'submission_unconfirmed',
  'timed_out',
  'unreachable',
  'rate_limited',
  'unavailable',
  'control_answer_invalid',
  'enrollment_pending',
];

interface Run {
  readonly fault: Fault;
  readonly place: FaultPlace;
  readonly first: CommandResult;
  /** The same command line again, without faults; where the first one surely ended well, that one. */
  readonly second: CommandResult;
  readonly thumbprint: string;
}

type FaultOf = (exchange: Exchange) => Fault | Promise<Fault>;

interface Lane {
  readonly proxy: LossyProxy;
  /** Another run's from time to time. */
  readonly script: { faultOf: FaultOf };
}

let stage: ControlStage;
let api: ControlClient;
let lanes: readonly Lane[] = [];
const runs: Run[] = [];
let enrollments: readonly JsonObject[] = [];
let keys: readonly JsonObject[] = [];

async function openLane(): Promise<Lane> {
  const script: Lane['script'] = { faultOf: () => 'pass' };
  const proxy = await startLossyProxy(
    () => stage.controlUrl,
    (exchange) => script.faultOf(exchange),
  );
  return { proxy, script };
}

beforeAll(async () => {
  lanes = await Promise.all(Array.from({ length: LANES }, openLane));
  stage = await ControlStage.start({ flags: lanes.flatMap(({ proxy }) => ['--public-url', proxy.url]) });
  api = await stage.api();
  const policy = String((await stage.policy('reviewed')).reference);
  const cases = FAULTS.flatMap((fault) => PLACES.map((place) => ({ fault, place })));
  await Promise.all(
    lanes.map(async (lane) => {
      for (let next = cases.shift(); next !== undefined; next = cases.shift()) {
        runs.push(await runTwice(lane, policy, next));
      }
    }),
  );
  await Promise.all(lanes.map(({ proxy }) => proxy.settled()));
  enrollments = await api.list(`/v1/sites/${SITE_ID}/enrollments`);
  keys = await api.list(`/v1/sites/${SITE_ID}/derived-keys`);
});
afterAll(async () => {
  await Promise.all(lanes.map(({ proxy }) => proxy.close()));
  await api?.close();
  await stage?.stop();
});

async function runTwice(
  lane: Lane,
  policy: string,
  { fault, place }: Pick<Run, 'fault' | 'place'>,
): Promise<Run> {
  const keyFile = stage.newKeyFile();
  const args = [
    ...['enroll', '--control-url', lane.proxy.url, '--policy', policy, '--output', 'json'],
    ...['--proof-file', await stage.tokenFor('reviewed'), '--private-key-out', keyFile],
    ...['--poll-interval', '50ms', '--timeout', '9s'],
  ];
  lane.script.faultOf = faultsOf(fault, place, lane.proxy.exchanges.length);
  const first = await stage.run(args);
  lane.script.faultOf = approving;
  const second = place === 'each submission' ? await stage.run(args) : first;
  const state = parseStrictJson(await readFile(`${keyFile}.enrollment.json`, 'utf8'));
  const thumbprint = isJsonObject(state) ? String(state.key_thumbprint) : '';
  return { fault, place, first, second, thumbprint };
}

/** @param begin index of the run's first exchange */
function faultsOf(fault: Fault, place: FaultPlace, begin: number): FaultOf {
  let polls = 0;
  return async (exchange) => {
    const kind = kindOf(exchange);
    if (kind === 'poll') polls += 1;
    // No operator decides before the poll that fails.
    if (polls > 1 || place !== 'first poll') await approving(exchange);
    if (place === 'each submission') return kind === 'submission' ? fault : 'pass';
    const isThere = place === 'first poll' ? kind === 'poll' && polls === 1 : kind === place;
    const isFirst = place !== 'submission' || exchange.index <= begin + 1;
    return isThere && isFirst && (place !== 'challenge' || exchange.index === begin) ? fault : 'pass';
  };
}

function kindOf({ method, path }: Exchange): 'challenge' | 'submission' | 'poll' {
  if (method === 'GET') return 'poll';
  return path.endsWith('/challenges') ? 'challenge' : 'submission';
}

/** Approves the enrollment that is polled; one that is decided already stays as it is. */
async function approving(exchange: Exchange): Promise<Fault> {
  const enrollmentId = /^\/v1\/enrollments\/(enr_[a-z0-9]+)/.exec(exchange.path)?.[1];
  if (enrollmentId !== undefined) {
    await api.act(`/v1/enrollments/${enrollmentId}/approve`).catch((error: unknown) => {
      const isDecided = error instanceof OperatorError && error.code === 'enrollment_state_conflict';
      if (!isDecided) decisionFaults.push(String(error));
    });
  }
  return 'pass';
}
const decisionFaults: string[] = [];

function keyIdOf({ stdout }: CommandResult): unknown {
  const answer = stdout === '' ? undefined : parseStrictJson(stdout);
  return isJsonObject(answer) ? answer.key_id : undefined;
}

const runsOf = (fault: Fault) => runs.filter((each) => each.fault === fault);

describe.each(FAULTS)('%s', (fault) => {
  it('at any request: the key, or a clear error', () => {
    expect(runsOf(fault)).toHaveLength(PLACES.length);
    for (const { place, first } of runsOf(fault)) {
      const outcome = first.exitCode === 0 ? 'done' : errorCode(first);
      expect({ place, outcome, known: outcome === 'done' || CLEAR_ERRORS.includes(outcome) }).toMatchObject({
        known: true,
      });
      // The command itself recovers from a single fault.
      if (place !== 'each submission') expect({ place, outcome }).toEqual({ place, outcome: 'done' });
    }
  });

  it('the same command line again: the one key that there is', () => {
    for (const { place, first, second, thumbprint } of runsOf(fault)) {
      const [key, ...others] = keys.filter(({ fingerprint }) => fingerprint === thumbprint);
      expect({ place, exitCode: second.exitCode, others }).toEqual({ place, exitCode: 0, others: [] });
      expect(keyIdOf(second)).toBe(key?.key_id);
      if (first.exitCode === 0) expect(keyIdOf(first)).toBe(key?.key_id);
      const made = enrollments.filter(({ fingerprint }) => fingerprint === thumbprint);
      expect(made.map(({ key_id }) => key_id)).toEqual([key?.key_id]);
    }
  });
});

it('no other decision was made', () => {
  expect(decisionFaults).toEqual([]);
  expect(keys).toHaveLength(runs.length);
  expect(enrollments).toHaveLength(runs.length);
});
