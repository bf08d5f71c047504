/** Checks that docs/operate/alerts.yaml uses existing metrics, labels and values, and that its run-book links work. */
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { REASONS } from '../../src/protocol/reasons.ts';
import { REPLAY_FENCE_REASONS } from '../../src/verifier/replay/store.ts';
import { createVerifierMetrics } from '../../src/verifier/verifier-metrics.ts';
import { anchorOf, codesIn, headings, readText, tableNamed } from '../support/docs/markdown.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

const { groups }: { readonly groups: readonly { readonly rules: readonly Rule[] }[] } = parse(
  readText('docs/operate/alerts.yaml'),
);
const rules = groups.flatMap((group) => group.rules);

interface Metric {
  readonly type: string;
  readonly labels: readonly string[];
  /** Words about values in the metric's row. */
  readonly words: readonly string[];
}

/** Metrics in the reference, which test/e2e/metrics-reference.test.ts compares with a running verifier. */
const metrics = new Map<string, Metric>(
  tableNamed(readText('docs/reference/metrics.md'), 'metrics').map(([name, type = '', text]) => [
    codesIn(name)[0] ?? '',
    { type: type.split(':')[0] ?? '', labels: codesIn(type), words: codesIn(text) },
  ]),
);
for (const { name } of createVerifierMetrics(() => undefined).registry.getMetricsAsArray()) {
  if (/^(?:process|nodejs)_/.test(name)) metrics.set(name, { type: 'gauge', labels: [], words: [] });
}

/** Labels that the scrape adds, and the label of a worker process. */
const TARGET_LABELS = ['job', 'instance', 'worker'];

interface Selected {
  readonly name: string;
  readonly matchers: readonly (readonly [label: string, values: readonly string[]])[];
}

function selectorsOf(expr: string): readonly Selected[] {
  const found = expr.matchAll(/\b((?:proofgate|grpc|process|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g);
  return [...found].map(([, name = '', matchers = '']) => ({
    name,
    matchers: [...matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)].map(
      ([, label = '', values = '']) => [label, values.split('|')] as const,
    ),
  }));
}

function valuesOf(name: string, label: string): readonly string[] {
  if (label === 'reason') return [...REASONS];
  if (name === 'proofgate_replay_fences_total') return REPLAY_FENCE_REASONS;
  return metrics.get(name)?.words ?? [];
}

it('has a rule for each condition that needs an operator', () => {
  const watched = new Set(rules.flatMap(({ expr }) => selectorsOf(expr).map(({ name }) => name)));
  const needed =
    'proofgate_ready proofgate_replay_links proofgate_replay_unavailable_total proofgate_replay_fences_total ' +
    'proofgate_bundle_age_seconds proofgate_bundle_refused_total proofgate_control_last_contact_timestamp_seconds ' +
    'proofgate_tls_certificate_expiry_timestamp_seconds proofgate_http_tls_certificate_expiry_timestamp_seconds ' +
    'proofgate_worker_restarts_total proofgate_break_glass_active ' +
    'proofgate_audit_failures_total proofgate_audit_dropped_total proofgate_decisions_total';
  expect(needed.split(' ').filter((name) => !watched.has(name))).toEqual([]);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

describe.each(rules.map((rule) => [rule.alert, rule] as const))('%s', (_alert, rule) => {
  const selectors = selectorsOf(rule.expr);

  it('uses existing metrics, labels and values', () => {
    expect(selectors).not.toEqual([]);
    for (const { matchers, name } of selectors) {
      expect([...metrics.keys()]).toContain(name);
      for (const [label, values] of matchers) {
        expect(metrics.get(name)?.labels).toContain(label);
        expect(valuesOf(name, label)).toEqual(expect.arrayContaining([...values]));
      }
    }
  });

  it('uses the increase of counters only', () => {
    const rising = [...rule.expr.matchAll(/(?:increase|rate)\(([a-z_]+)/g)].map(([, name = '']) => name);
    expect(rising.filter((name) => metrics.get(name)?.type !== 'counter')).toEqual([]);
    const counters = selectors.filter(({ name }) => metrics.get(name)?.type === 'counter');
    expect(counters.filter(({ name }) => !rising.includes(name))).toEqual([]);
  });

  it('has a severity, known labels in its summary, and a run-book link', () => {
    const { annotations, labels } = rule;
    expect(['critical', 'warning', 'info']).toContain(labels.severity);
    const known = [...TARGET_LABELS, ...selectors.flatMap(({ name }) => metrics.get(name)?.labels ?? [])];
    const usedLabels = [...annotations.summary.matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label);
    expect(usedLabels.filter((label) => !known.includes(label))).toEqual([]);
    const [document = '', anchor] = annotations.runbook.split('#');
    expect(['docs/operate/enforcement.md', 'docs/operate/run-book.md']).toContain(document);
    expect(headings(readText(document)).map(anchorOf)).toContain(anchor);
  });
});
