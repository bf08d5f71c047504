/** Tables of docs/reference/ that come from the code, by the names that the pages give them. */
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { Registry } from 'prom-client';
import { createBrokerProcessMetrics } from '../../../src/broker/program/broker-process-metrics.ts';
import { createAgentMetrics, createPassportMetrics } from '../../../src/caller/agent/agent-metrics.ts';
import { createSignerMetrics } from '../../../src/caller/signer/program/signer-metrics.ts';
import { CTL_SETTINGS } from '../../../src/cli/ctl/ctl-connection.ts';
import { buildProgram } from '../../../src/cli/program.ts';
import { PROBLEMS } from '../../../src/control/domain/api-problem.ts';
import { AUDITED } from '../../../src/control/domain/audit-kinds.ts';
import { createControlMetrics } from '../../../src/control/program/control-metrics.ts';
import { createProxyMetrics } from '../../../src/enforcement/reverse-proxy/proxy-metrics.ts';
import { Output } from '../../../src/process/program/output.ts';
import type { Setting } from '../../../src/process/settings/settings.ts';
import { CADDY_RULES } from '../../../src/tools/gateway-lint/caddy/rules.ts';
import { EGRESS_RULES } from '../../../src/tools/gateway-lint/egress/egress-rules.ts';
import type { Rule } from '../../../src/tools/gateway-lint/gateway/gateway.ts';
import { RULES } from '../../../src/tools/gateway-lint/lint.ts';
import { NGINX_RULES } from '../../../src/tools/gateway-lint/nginx/rules.ts';
import { TRAEFIK_RULES } from '../../../src/tools/gateway-lint/traefik/rules.ts';
import { codesIn, readText, tableNamed } from './markdown.ts';

export interface ReferenceTable {
  readonly page: string;
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Heading above a table of its own; undefined where the page says where the table is. */
  readonly heading?: string;
}

const code = (text: string) => `\`${text}\``;
const codes = (texts: readonly string[]) => texts.map(code).join(', ');

export async function referenceTables(): Promise<readonly ReferenceTable[]> {
  return [
    ...lintTables(),
    problemTable(),
    auditTable(),
    ...(await metricTables()),
    ...(await flagTables()),
    ...resourceTables(),
  ];
}

function lintTables(): readonly ReferenceTable[] {
  const tables: readonly [string, readonly Pick<Rule, 'effect' | 'id' | 'severity'>[]][] = [
    ['rules', RULES],
    ['egress-rules', EGRESS_RULES],
    ['nginx-rules', NGINX_RULES],
    ['traefik-rules', TRAEFIK_RULES],
    ['caddy-rules', CADDY_RULES],
  ];
  return tables.map(([name, rules]) => ({
    page: 'docs/reference/lint-rules.md',
    name,
    columns: ['rule', 'severity', 'effect'],
    rows: rules.map(({ effect, id, severity }) => [code(id), severity, effect]),
  }));
}

function problemTable(): ReferenceTable {
  return {
    page: 'docs/reference/control.md',
    name: 'problems',
    columns: ['code', 'status', 'title'],
    rows: Object.entries(PROBLEMS)
      .map(([name, [status, title]]) => [code(name), String(status), title])
      .toSorted(([a = '', x = ''], [b = '', y = '']) => Number(x) - Number(y) || (a < b ? -1 : 1)),
  };
}

function auditTable(): ReferenceTable {
  return {
    page: 'docs/reference/control.md',
    name: 'audit-events',
    columns: ['resource', 'verbs'],
    rows: Object.entries(AUDITED).map(([resource, verbs]) => [code(resource), codes(verbs)]),
  };
}

/** The meaning of a metric is its help, unless the page says more. The verifier's registry is spread over its parts. */
async function metricTables(): Promise<readonly ReferenceTable[]> {
  const proxy = new Registry();
  createProxyMetrics(proxy);
  const control = createControlMetrics({
    propagation: async () => [],
    renewals: async () => [],
    oauthKeys: async () => [],
  });
  const registries: readonly [string, readonly Registry[]][] = [
    ['proxy-metrics', [proxy]],
    ['broker-metrics', [createBrokerProcessMetrics().registry]],
    ['signer-metrics', [createSignerMetrics(() => 0).registry]],
    ['agent-metrics', [createAgentMetrics(() => 0), createPassportMetrics(() => 0)].map((of) => of.registry)],
    ['control-metrics', [control.registry]],
  ];
  const page = 'docs/reference/metrics.md';
  return Promise.all(
    registries.map(async ([name, each]) => {
      const said = new Map(tableNamed(readText(page), name).map((cells) => [codesIn(cells[0])[0], cells[2]]));
      const rows = new Map<string, readonly string[]>();
      for (const registry of each) {
        const labels = new Map(registry.getMetricsAsArray().map((metric) => [metric.name, labelsOf(metric)]));
        for (const metric of await registry.getMetricsAsJSON()) {
          if (/^(?:process|nodejs)_/.test(metric.name)) continue;
          const own = labels.get(metric.name) ?? [];
          const type = own.length === 0 ? String(metric.type) : `${metric.type}: ${codes(own)}`;
          rows.set(metric.name, [code(metric.name), type, said.get(metric.name) ?? metric.help]);
        }
      }
      return { page, name, columns: ['name', 'type, labels', 'meaning'], rows: [...rows.values()] };
    }),
  );
}

function labelsOf(metric: object): readonly string[] {
  const labels: unknown = Reflect.get(metric, 'labelNames');
  return Array.isArray(labels) ? labels.map(String) : [];
}

/** Commands whose flags have a table with more than the help says; tests compare their flags and defaults. */
const ANNOTATED = new Set([
  'agent',
  'broker',
  'control',
  'ctl broker-keys',
  'ctl login',
  'dev',
  'enroll',
  'proxy',
  'signer',
  'verifier',
]);

/** Each command has these; docs/operate/cli.md "Settings" and "Output" explain them. */
const OF_EVERY_COMMAND = ['config', 'output'];
const OF_CTL = Object.values(CTL_SETTINGS).map(({ flag }) => flag);

async function flagTables(): Promise<readonly ReferenceTable[]> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const context = { env: {}, output: new Output(nowhere, nowhere, {}), version: '0.0.0' };
  const commands = commandsBelow(await buildProgram(context), []);
  const own = commands
    .filter(({ name }) => !ANNOTATED.has(name))
    .map(({ settings, ...command }) => {
      const shared = command.name.startsWith('ctl ') ? [...OF_EVERY_COMMAND, ...OF_CTL] : OF_EVERY_COMMAND;
      return { ...command, settings: settings.filter(({ flag }) => !shared.includes(flag)) };
    })
    .filter(({ settings }) => settings.length > 0);
  const ctl = { name: 'ctl', description: '', settings: Object.values(CTL_SETTINGS) };
  return [commandTable(commands), ...[...own, ctl].map(flagTable)];
}

function commandTable(commands: readonly Named[]): ReferenceTable {
  return {
    page: 'docs/reference/command-line.md',
    name: 'commands',
    columns: ['command', 'purpose'],
    // A group has no settings of its own.
    rows: commands
      .filter(({ settings }) => settings.length > 0)
      .map(({ description, name }) => [code(name), description]),
  };
}

function flagTable({ name, settings }: Named): ReferenceTable {
  return {
    page: 'docs/reference/command-line.md',
    name: `${name.replaceAll(' ', '-')}-flags`,
    heading: name === 'ctl' ? 'Every command of `ctl`' : code(name),
    columns: ['flag', 'meaning'],
    rows: settings.map(({ description, flag, valueName }) => [
      code(valueName === undefined ? `--${flag}` : `--${flag} ${valueName.slice(1, -1).toUpperCase()}`),
      description,
    ]),
  };
}

interface Named {
  readonly name: string;
  readonly description: string;
  readonly settings: readonly Setting<unknown>[];
}

function commandsBelow(command: Command, above: readonly string[]): readonly Named[] {
  return command.commands.flatMap((below) => {
    const path = [...above, below.name()];
    const settings: readonly Setting<unknown>[] = Reflect.get(below, 'settings') ?? [];
    return [
      { name: path.join(' '), description: below.description(), settings },
      ...commandsBelow(below, path),
    ];
  });
}

interface Operation {
  readonly summary?: string;
  readonly tags?: readonly string[];
}

/** One table for each tag of the API. */
function resourceTables(): readonly ReferenceTable[] {
  const { paths }: { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> } =
    JSON.parse(readText('docs/reference/openapi.json'));
  const byTag = new Map<string, string[][]>();
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { summary = '', tags = [] }] of Object.entries(operations)) {
      const tag = tags[0] ?? 'other';
      byTag.set(tag, [...(byTag.get(tag) ?? []), [code(`${method.toUpperCase()} ${path}`), summary]]);
    }
  }
  return [...byTag].map(([tag, rows]) => ({
    page: 'docs/reference/resources.md',
    name: `resources ${tag}`,
    heading: tag,
    columns: ['operation', 'what it does'],
    rows,
  }));
}
