/** Runs the chart's own suites (helm/proofgate/tests) with helm-unittest, as chart developers do. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { CACHE, CHART, describeChart } from '../support/chart/chart.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

const UNITTEST = `${CACHE}/bin/helm-unittest`;

function unittest(chart: string): { readonly status: number | null; readonly said: string } {
  const { status, stderr, stdout } = spawnSync(UNITTEST, ['--color=false', chart], { encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

describeChart('helm-unittest', () => {
  /** A copy, because helm-unittest writes beside the suites; it includes the values files that they use. */
  let chart = '';
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'proofgate-unittest-'));
    chart = join(folder, 'helm', 'proofgate');
    cpSync(CHART, chart, { recursive: true });
    const values = ['test', 'helm', 'values'];
    cpSync(checkoutPath(...values), join(folder, ...values), { recursive: true });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('passes every suite', () => {
    const { said, status } = unittest(chart);
    const suites = readdirSync(join(CHART, 'tests')).filter((name) => name.endsWith('_test.yaml'));
    expect(suites.length).toBeGreaterThan(3);
    expect({ status, said }).toMatchObject({ status: 0 });
    expect(said).toMatch(new RegExp(`Test Suites: +${suites.length} passed, ${suites.length} total`));
  });

  it('does not pass where a template no longer does what a suite says', () => {
    const template = join(chart, 'templates', '_point.tpl');
    writeFileSync(template, readFileSync(template, 'utf8').replace('maxSurge: 1', 'maxSurge: 2'));
    expect(unittest(chart).status).toBe(1);
  });
});
