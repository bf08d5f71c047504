/**
 * Checks that links, paths and sections in the documents exist, and that flags, reasons, metrics and headers of the code are
 * documented.
 */
import { posix } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { PROXY_SETTINGS } from '../../src/enforcement/programs/proxy/proxy-settings.ts';
import { VERIFIER_SETTINGS } from '../../src/enforcement/programs/verifier/verifier-settings.ts';
import type { Setting } from '../../src/process/settings/settings.ts';
import { REASONS } from '../../src/protocol/reasons.ts';
import { CONTEXT_HEADERS } from '../../src/protocol/wire-names.ts';
import { createVerifierMetrics } from '../../src/verifier/verifier-metrics.ts';
import {
  anchorOf,
  filesOfCheckout,
  headings,
  isInCheckout,
  readText,
  relativeLinks,
  sectionOf,
  sourcePaths,
} from '../support/docs/markdown.ts';

const DOCUMENTS = filesOfCheckout('.', '.md');

describe.each(DOCUMENTS)('%s', (document) => {
  const markdown = readText(document);

  it('has no broken links', () => {
    const broken = relativeLinks(markdown).filter((link) => !leadsSomewhere(document, link));
    expect(broken).toEqual([]);
  });

  it('names existing paths', () => {
    expect(sourcePaths(markdown).filter((path) => !isInCheckout(path))).toEqual([]);
  });
});

function leadsSomewhere(document: string, link: string): boolean {
  const [path = '', fragment] = link.split('#');
  const target = path === '' ? document : posix.join(posix.dirname(document), path);
  if (!isInCheckout(target)) return false;
  return fragment === undefined || headingsOf(target).map(anchorOf).includes(fragment);
}

function headingsOf(document: string): readonly string[] {
  return isInCheckout(document) ? headings(readText(document)) : [];
}

/** The flag at the start of a table row, with or without its value. */
function flagOf(row: string): string | undefined {
  return /^\| `--([a-z-]+)[ `]/.exec(row)?.[1];
}

const OF_VERIFIER: readonly Setting<unknown>[] = Object.values(VERIFIER_SETTINGS);
/** The flags that the proxy has and the verifier has not, or with another meaning. */
const OF_PROXY: readonly Setting<unknown>[] = Object.values(PROXY_SETTINGS).filter(
  (setting: Setting<unknown>) => !OF_VERIFIER.includes(setting) && !setting.flag.startsWith('tls-'),
);

describe.each([
  ['verifier', OF_VERIFIER],
  ['proxy', OF_PROXY],
] as const)('docs/reference/command-line.md on %s', (program, settings) => {
  const section = sectionOf(readText('docs/reference/command-line.md'), `\`${program}\``);

  it.each(settings.map((setting) => [setting.flag, setting] as const))(
    'has --%s, with its default',
    (flag, setting) => {
      const row = section.split('\n').find((line) => flagOf(line) === flag) ?? '';
      const byDefault = /\(default: ([\w./:-]+)\)$/.exec(setting.description)?.[1];
      const expected = setting.absent.kind === 'required' ? 'required' : (byDefault ?? '');
      expect(row.split('|')[2]).toContain(expected);
    },
  );

  it('has no other flag', () => {
    const described = section.split('\n').flatMap((line) => flagOf(line) ?? []);
    expect(described).toEqual(settings.map(({ flag }) => flag));
  });
});

const rowsOf = (markdown: string) => markdown.split('\n').filter((line) => line.startsWith('| '));

describe('docs/operate/run-book.md', () => {
  const rows = rowsOf(readText('docs/operate/run-book.md'));

  it.each([...REASONS])('has the reason %s', (reason) => {
    expect(rows.some((row) => row.startsWith(`| \`${reason}\``))).toBe(true);
  });

  it.each(detailsOfReasons())('has the detail %s', (detail) => {
    expect(rows.some((row) => row.split('|', 2)[1]?.includes(`\`${detail}\``))).toBe(true);
  });
});

describe('docs/reference/', () => {
  const metrics = rowsOf(readText('docs/reference/metrics.md'));
  const members = rowsOf(readText('docs/reference/audit-events.md'));

  it.each(metricNames())('has the metric %s', (name) => {
    expect(metrics.some((row) => row.startsWith(`| \`${name}\``))).toBe(true);
  });

  it.each(eventMembers())('has the member %s of audit events', (member) => {
    expect(members.some((row) => row.split('|', 2)[1]?.includes(`\`${member}\``))).toBe(true);
  });
});

describe('docs/operate/enforcement.md', () => {
  const markdown = readText('docs/operate/enforcement.md');

  it.each(Object.values(CONTEXT_HEADERS))('has the context header %s', (header) => {
    const [, rest = ''] = header.split('x-proofgate');
    expect(markdown.toLowerCase()).toMatch(new RegExp(`\`(?:x-proofgate)?${rest}\``));
  });
});

/** Details exist only as types, so this parses their declaration. */
function detailsOfReasons(): readonly string[] {
  const [, declaration = ''] = /export interface DetailOf \{([\s\S]*?)\n\}/.exec(
    readText('src/protocol/reasons.ts'),
  ) ?? [''];
  const details = [...declaration.matchAll(/'([a-z_]+)'/g)].map(([, detail = '']) => detail);
  if (details.length < 20) throw new Error('src/protocol/reasons.ts declares its details otherwise now');
  return [...new Set(details)];
}

function metricNames(): readonly string[] {
  const { registry } = createVerifierMetrics(() => undefined);
  const names = registry.getMetricsAsArray().map(({ name }) => name);
  return names.filter((name) => !/^(process|nodejs)_/.test(name));
}

function eventMembers(): readonly string[] {
  const schema: { readonly properties: object } = JSON.parse(
    readText('docs/reference/schema/decision-event.schema.json'),
  );
  return Object.keys(schema.properties);
}
