/**
 * Tests `proofgate explain` with an audit event alone: every row of the decision table, and the search for an event in audit
 * files.
 */
import { appendFile, chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Denial, REASONS } from '../../../src/protocol/reasons.ts';
import { hintFor } from '../../../src/verifier/decision/explain/hints.ts';
import { partsOf } from '../../support/cases/denial-case.ts';
import type { Fault } from '../../support/cases/fault.ts';
import { requestWith, snapshotWith, storeWith } from '../../support/cases/faulty-site.ts';
import { FAULTS } from '../../support/cases/one-fault.ts';
import { expectCliError } from '../../support/cli/run-cli.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import { ExplainStage, eventOf, keys, type Report } from './explain-fixture.ts';

let stage: ExplainStage;
beforeAll(async () => {
  stage = await ExplainStage.open();
});
afterAll(() => stage.close());

const KEY = ['--bundle-key'];
const bundleArgs = () => ['--bundle', stage.bundle, ...KEY, stage.path('key.jwk.json')];

interface Denied {
  readonly denial: Denial;
  readonly event: object;
}

/** The denial of a verifier, and the audit event that it wrote. */
async function denyWith(fault: Fault, maxInFlight = 100): Promise<Denied> {
  const snapshot = await snapshotWith(keys, [fault]);
  const { events, verifier } = createTestVerifier({ snapshot, store: storeWith([fault]), maxInFlight });
  const request = requestWith(keys, fault.only ?? 'billing', [fault]);
  const decision = checkNow(verifier, request.facts);
  if (decision.kind !== 'denied') throw new Error(`${fault.outcome}: allowed`);
  return { denial: decision.denial, event: JSON.parse(JSON.stringify(events.at(-1))) };
}

async function explainEvent(event: object, ...args: readonly string[]) {
  const file = stage.path('event.json');
  await writeFile(file, JSON.stringify(event));
  const run = await stage.run('--request', file, '--output', 'json', ...args);
  const report: Report = JSON.parse(run.stdout || '{}');
  return { run, report };
}

const overloaded: Fault = { step: 1, outcome: 'verifier_unavailable/overloaded 503' };
describe('an event alone', () => {
  it('covers every reason', () => {
    const reasons = [...FAULTS, overloaded].map(({ outcome }) => partsOf(outcome).reason);
    expect([...new Set(reasons)].sort()).toEqual([...REASONS].sort());
  });

  it.each(FAULTS)('$outcome: the same reason, its step, and what to do', async (fault) => {
    const { denial, event } = await denyWith(fault);
    for (const args of [[], bundleArgs()]) {
      const { report, run } = await explainEvent(event, ...args, '--show-values');
      expect(run).toMatchObject({ exitCode: 1, stderr: '' });
      const { detail = null, reason, status } = denial;
      expect(report.decision).toEqual({ outcome: 'denied', reason, detail, status });
      expect(report.hint).toBe(hintFor(denial));
      const failed = report.steps.filter(({ verdict }) => verdict === 'failed');
      expect(failed).toEqual([expect.objectContaining({ step: fault.step, reason })]);
      const before = report.steps.slice(0, fault.step - 1).map(({ verdict }) => verdict);
      expect(new Set(before)).toEqual(new Set(fault.step === 1 ? [] : ['passed']));
    }
  });

  it('of a verifier that is overloaded: no step decided', async () => {
    const { denial, event } = await denyWith(overloaded, 0);
    const { report } = await explainEvent(event);
    expect(report.decision).toMatchObject({ reason: 'verifier_unavailable', detail: 'overloaded' });
    expect(report.hint).toBe(hintFor(denial));
    expect(new Set(report.steps.map(({ verdict }) => verdict))).toEqual(new Set(['not_checked']));
    expect(report.needs).toEqual([]);
  });

  it('shows route, key and rules of the bundle, and what more it needs', async () => {
    const signed = stage.sign({ caller: 'billing', route: 'orders-read' });
    const event = { ...eventOf(signed), outcome: 'denied', reason: 'source_subject_mismatch' };
    const alone = await explainEvent(event);
    expect(alone.report).toMatchObject({
      bundle: null,
      route: { route_id: 'orders-read' },
      caller: { key_id: 'dk_billing', known_from: 'bundle', key: null },
      rules: [],
    });
    expect(alone.report.needs).toEqual([
      expect.stringContaining('--bundle'),
      expect.stringContaining('--capture-denied'),
    ]);
    const { report } = await explainEvent(event, ...bundleArgs());
    expect(report).toMatchObject({
      bundle: { revision: 7 },
      recorded: { same_bundle: true, comparison: null },
      route: { route_id: 'orders-read', method: 'GET', path_template: '/v1/orders/{order_id}' },
      caller: { key: 'derived_key', key_status: 'active' },
    });
    expect(report.rules.length).toBeGreaterThan(1);
    expect(report.needs).toEqual([expect.stringContaining('--capture-denied')]);
  });

  it('of an allowed request', async () => {
    const event = eventOf(stage.sign({ caller: 'billing', route: 'orders-read' }));
    const { report, run } = await explainEvent(event, ...bundleArgs());
    expect(run.exitCode).toBe(0);
    expect(report).toMatchObject({ decision: { outcome: 'allowed' }, hint: null, needs: [] });
    await writeFile(stage.path('allowed.json'), JSON.stringify(event));
    const text = await stage.run('--request', stage.path('allowed.json'), ...bundleArgs());
    expect(text.stdout).toMatch(/^ALLOWED {2}as the audit event says\n/);
  });

  it('shows a claimed caller by length', async () => {
    const event = {
      ...eventOf(stage.sign({ caller: 'broker', route: 'orders-read' })),
      outcome: 'denied',
      reason: 'invalid_request_proof',
      detail: 'key_unknown',
      caller_verified: false,
      key_id: 'dk_of_another',
      subject: 'spiffe://elsewhere.example/secret',
    };
    const { report, run } = await explainEvent(event, ...bundleArgs());
    expect(report).toMatchObject({ caller: { known_from: 'claimed', key_id: '[13 characters]', key: null } });
    expect(run.stdout).not.toContain('elsewhere');
  });

  it.each([
    ['another event', { event: 'proofgate.audit_gap' }, '/event'],
    ['a reason of a later version', { outcome: 'denied', reason: 'not_yet_known' }, '/reason'],
    ['no time', { time: 'yesterday' }, '/time'],
  ])('%s', async (_, change, place) => {
    const event = { ...eventOf(stage.sign({ caller: 'billing', route: 'orders-read' })), ...change };
    const run = await stage.explain(event);
    expectCliError(run, 'request_invalid', 2);
    expect(run.stderr).toContain(place);
  });
});

describe('--decision-id', () => {
  const OTHER_ID = '00000000-0000-4000-8000-000000000000';
  let event: { readonly decision_id: string };
  let folder: string;
  const file = () => `${folder}/audit.jsonl`;
  const find = (id: string, ...args: readonly string[]) =>
    stage.run('--decision-id', id, '--audit-file', file(), ...args);
  const line = (value: object) => `${JSON.stringify(value)}\n`;

  beforeAll(async () => {
    folder = stage.path('audit');
    await mkdir(folder);
    const signed = stage.sign({ caller: 'billing', route: 'orders-read' });
    event = eventOf(signed, 2) as typeof event;
    // Longer than what is read at once, with the event in the middle.
    const others = line({ ...event, decision_id: OTHER_ID, reason: 'request_binding_mismatch' });
    const many = others.repeat(6000);
    expect(many.length).toBeGreaterThan(3 * 1024 * 1024);
    await writeFile(file(), `${many}${line(event)}${many}`);
  });

  const expectFound = async () => {
    const run = await find(event.decision_id, '--output', 'json');
    expect(run.exitCode).toBe(1);
    const report: Report = JSON.parse(run.stdout);
    expect(report.decision).toMatchObject({ reason: 'jti_replay' });
    expect(report.recorded).toMatchObject({ decision_id: event.decision_id });
  };

  it('finds the event in a long file, and after rotation', async () => {
    await expectFound();
    await rename(file(), `${file()}.1`);
    await expectFound();
    await writeFile(file(), line({ ...event, decision_id: OTHER_ID }));
    await expectFound();
    await writeFile(`${file()}-20261121.gz`, gzipSync(line(event)));
    await writeFile(`${file()}.1`, '');
    await expectFound();
  });

  it('says that there is none, or that its line is damaged', async () => {
    expectCliError(await find('11111111-0000-4000-8000-000000000000'), 'decision_not_found', 2);
    const torn = '22222222-0000-4000-8000-000000000000';
    await appendFile(file(), `{"event":"proofgate.decision","decision_id":"${torn}","outc\n`);
    expectCliError(await find(torn), 'audit_file_damaged', 2);
    // After a failure the verifier writes the line again, as a whole.
    await appendFile(file(), line({ ...event, decision_id: torn }));
    expect((await find(torn)).exitCode).toBe(1);
    await writeFile(`${file()}.2.gz`, 'not gzip');
    await expectFound();
    expectCliError(await find('11111111-0000-4000-8000-000000000000'), 'audit_file_damaged', 2);
  });

  it.each([
    [['--decision-id', '7', '--audit-file', 'x'], 'bad_decision_id'],
    [['--decision-id', OTHER_ID], 'audit_file_required'],
    [[], 'set_request_or_decision_id'],
    [['--decision-id', OTHER_ID, '--request', '-'], 'set_request_or_decision_id'],
    [['--decision-id', OTHER_ID, '--audit-file', '/nowhere/audit.jsonl'], 'file_not_found'],
    [['--decision-id', OTHER_ID, '--audit-file', '/'], 'file_is_directory'],
  ])('%j: %s', async (args, code) => {
    expectCliError(await stage.run(...args), code, 2);
  });

  it('needs an audit file that may be read', async () => {
    const locked = stage.path('locked.jsonl');
    await writeFile(locked, '');
    await chmod(locked, 0);
    const run = await stage.run('--decision-id', OTHER_ID, '--audit-file', locked);
    // The superuser may read any file.
    expectCliError(run, process.getuid?.() === 0 ? 'decision_not_found' : 'file_unreadable', 2);
  });
});
