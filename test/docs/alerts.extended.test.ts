/** Parses the alert rules with Prometheus' own parser. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { CACHE, describeChart } from '../support/chart/chart.ts';
import { readText } from '../support/docs/markdown.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

/** Errors of Prometheus' own parser, one a line. */
function misread(file: string): string {
  const { stderr, stdout } = spawnSync(`${CACHE}/bin/check-rules`, [file], { encoding: 'utf8' });
  return stdout + stderr;
}

describeChart('Prometheus', () => {
  it.each([
    'docs/operate/alerts.yaml',
    'helm/proofgate/files/broker-alerts.yaml',
    'helm/proofgate/files/control-alerts.yaml',
  ])('reads %s', (file) => {
    expect(misread(checkoutPath(file))).toBe('');
  });

  it('would not read a wrong expression, member or template', () => {
    const folder = mkdtempSync(join(tmpdir(), 'pg-rules-'));
    try {
      const file = join(folder, 'rules.yaml');
      for (const [from, to] of [
        ['sum by (job, instance) (rate(', 'sum by (job, instance) rate(('],
        ['for: 10m', 'during: 10m'],
        ['{{ $labels.instance }}', '{{ $labels.instance }'],
      ]) {
        const text = readText('docs/operate/alerts.yaml');
        expect(text).toContain(from);
        writeFileSync(
          file,
          text.replace(from ?? '', () => to ?? ''),
        );
        expect(misread(file)).not.toBe('');
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
