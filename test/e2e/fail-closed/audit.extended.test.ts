/**
 * Tests `--audit required` while the destination is full or has no reader. A request that cannot be recorded does not reach the
 * API, every answer says so, and service resumes by itself. The trail holds every request that reached the API.
 * `PROOFGATE_TEST_REQUESTS` sets the number of requests (`make soak`).
 */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, readSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { mountSmallDisk } from '../../support/harness/small-disk.ts';
import type { VerifierProcess } from '../../support/site/verifier.ts';
import { waitFor } from '../../support/wait.ts';
import { CAMPAIGN_TIMEOUT_MS, type Campaign, logSummary, OTHER_REQUESTS } from './campaign.ts';
import { type BegunCampaign, useFailClosedFixture } from './fail-closed-fixture.ts';
import { readTrailOf } from './trail-of.ts';

const fixture = useFailClosedFixture();
const NOT_RECORDED = 'verifier_unavailable/audit';

const begin = (auditFile: string) => fixture.begin({ requests: OTHER_REQUESTS, auditFile });

/** Every request that an upstream saw has its record, as allowed. */
function expectRecorded(campaign: Campaign, trail: string): void {
  const { allowed } = readTrailOf(trail);
  const forwarded = campaign.gateways.flatMap(({ upstream }) => upstream.requests);
  const ids = forwarded.flatMap(({ headers }) => headerValues(headers, 'x-proofgate-decision-id'));
  expect(ids.length).toBeGreaterThan(0);
  expect(ids.filter((id) => !allowed.has(id))).toEqual([]);
}

/** On a busy test machine, Envoy does not wait for each answer. */
const NO_ANSWER = 'verifier_unavailable/no_answer';

/** No request is allowed, and every answer says why. */
function expectRefused(campaign: Campaign): void {
  const {
    [NOT_RECORDED]: notRecorded = 0,
    [NO_ANSWER]: _,
    ...others
  } = Object.fromEntries(campaign.duringFault());
  expect(others).toEqual({});
  expect(notRecorded).toBeGreaterThanOrEqual(OTHER_REQUESTS);
}

/** The gaps count every denial for that reason, and at most those requests besides that got no answer. */
function expectGapsReported(campaign: Campaign, trail: string): void {
  const { lost } = readTrailOf(trail);
  const notRecorded = campaign.all().get(NOT_RECORDED) ?? 0;
  expect(lost).toBeGreaterThanOrEqual(notRecorded);
  expect(lost).toBeLessThanOrEqual(notRecorded + (campaign.all().get(NO_ANSWER) ?? 0));
}

/** A gap line is shorter than an event. Where one still fits, only the next request finds that no space is left. */
async function expectNotReady(verifier: VerifierProcess, campaign: Campaign, code: string): Promise<void> {
  const text = await waitFor('no readiness', async () => {
    await campaign.send(8);
    const answer = await verifier.probe('/readyz');
    return answer.status === 503 ? answer.text : undefined;
  });
  const problem = expect.stringContaining(`decisions cannot be recorded (${code}): `);
  expect(JSON.parse(text).checks).toEqual(expect.arrayContaining([{ name: 'audit', ok: false, problem }]));
}

/** Sends until requests are not recorded: then none is allowed, and the verifier is not ready. */
async function expectFailure({ campaign, verifier }: BegunCampaign, code: string): Promise<void> {
  await waitFor('the first that is not recorded', async () => {
    await campaign.send(16);
    return campaign.all().has(NOT_RECORDED) ? true : undefined;
  });
  await campaign.send(64);
  campaign.failing();
  await campaign.sendUntilReported(NOT_RECORDED, OTHER_REQUESTS);
  expectRefused(campaign);
  await expectNotReady(verifier, campaign, code);
}

/** Without a request, the verifier detects the recovery by itself. */
async function expectReadyAgain({ campaign, verifier }: BegunCampaign): Promise<void> {
  await waitFor('the verifier to be ready again', async () =>
    (await verifier.probe('/readyz')).status === 200 ? true : undefined,
  );
  campaign.healed();
  await campaign.untilOpen();
  campaign.reckon();
}

/** Room for a record of each request, and then some. */
const disk = mountSmallDisk(64 + 2 * OTHER_REQUESTS, 'a full disk under --audit required');
(disk === undefined ? it.skip : it)(
  'the disk is full',
  async () => {
    if (disk === undefined) return;
    fixture.onEnd(disk.remove);
    const auditFile = join(disk.path, 'audit.jsonl');
    const begun = await begin(auditFile);
    const { campaign } = begun;
    const underWay = campaign.send(Math.ceil(OTHER_REQUESTS / 10));
    disk.fill();
    await underWay;
    await expectFailure(begun, 'enospc');
    const before = readFileSync(auditFile, 'utf8');
    disk.free();
    await expectReadyAgain(begun);
    const after = readFileSync(auditFile, 'utf8');
    expect(after.startsWith(before)).toBe(true);
    expectRecorded(campaign, after);
    expectGapsReported(campaign, after);
    logSummary('the disk is full', campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'a FIFO without a reader',
  async () => {
    const fifo = join(fixture.site.directory, 'audit.fifo');
    execFileSync('mkfifo', [fifo]);
    const reader = new FifoReader(fifo);
    fixture.onEnd(() => reader.close());
    const begun = await begin(fifo);
    const { campaign, verifier } = begun;
    reader.pause();
    await expectFailure(begun, 'eagain');
    reader.resume();
    await expectReadyAgain(begun);
    await verifier.stop();
    await reader.ended;
    expectRecorded(campaign, reader.text);
    expectGapsReported(campaign, reader.text);
    logSummary('a FIFO without a reader', campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'renamed by logrotate again and again: nothing fails, and each request has one whole record',
  async () => {
    const auditFile = join(fixture.site.directory, 'rotated.jsonl');
    const { campaign, verifier } = await begin(auditFile);
    const rotated: string[] = [];
    // Long enough for several renames.
    const underWay = campaign.send(2 * OTHER_REQUESTS);
    let isDone = false;
    void underWay.finally(() => {
      isDone = true;
    });
    while (!isDone) {
      const name = `${auditFile}.${rotated.length + 1}`;
      renameSync(auditFile, name);
      rotated.push(name);
      verifier.signal('SIGHUP');
      await waitFor('the new file', () => (isThere(auditFile) ? true : undefined));
      await delay(20);
    }
    await underWay;
    campaign.reckon();
    expect(campaign.all().has(NOT_RECORDED)).toBe(false);
    expect(rotated.length).toBeGreaterThan(2);
    const trail = [...rotated, auditFile].map((file) => readFileSync(file, 'utf8')).join('');
    const { allowed, decisions, lost, torn } = readTrailOf(trail);
    expect([torn, lost]).toEqual([[], 0]);
    // An answer too late for Envoy is recorded all the same.
    const sent = [...campaign.all().values()].reduce((sum, each) => sum + each, 0);
    const unanswered = campaign.all().get('verifier_unavailable/no_answer') ?? 0;
    expect(decisions).toBeGreaterThanOrEqual(sent - unanswered);
    expect(allowed.size).toBeGreaterThanOrEqual(campaign.all().get('200') ?? 0);
    expectRecorded(campaign, trail);
    logSummary(`rotated ${rotated.length} times`, campaign);
  },
  CAMPAIGN_TIMEOUT_MS,
);

function isThere(file: string): boolean {
  try {
    closeSync(openSync(file, constants.O_RDONLY));
    return true;
  } catch {
    return false;
  }
}

/** Drains a FIFO continuously, except while paused. */
class FifoReader {
  readonly #descriptor: number;
  readonly #parts: Buffer[] = [];
  #isPaused = false;
  #isClosed = false;
  /** Settles when the writer has gone. */
  readonly ended: Promise<void>;

  constructor(path: string) {
    this.#descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    this.ended = this.#read();
  }

  get text(): string {
    return Buffer.concat(this.#parts).toString('utf8');
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
  }

  close(): void {
    this.#isClosed = true;
  }

  async #read(): Promise<void> {
    let hasBegun = false;
    while (!this.#isClosed) {
      const part = this.#isPaused ? undefined : readOnce(this.#descriptor);
      if (part?.byteLength === 0 && hasBegun) break;
      hasBegun ||= part !== undefined && part.byteLength > 0;
      if (part === undefined || part.byteLength === 0) await delay(5);
      else this.#parts.push(part);
    }
    closeSync(this.#descriptor);
  }
}

/** undefined: nothing yet; empty: no writer */
function readOnce(descriptor: number): Buffer | undefined {
  const part = Buffer.alloc(1 << 16);
  try {
    return Buffer.from(part.subarray(0, readSync(descriptor, part)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined;
    throw error;
  }
}
