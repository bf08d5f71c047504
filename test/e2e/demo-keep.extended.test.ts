/** The lines that `make demo-keep` prints do what they say, and a preview over the demo's decisions says what the sidecar then does. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import type { PreviewReport } from '../../src/verifier/preview/preview.ts';
import { checkoutPath } from '../support/harness/checkout.ts';
import { type Child, startChild } from '../support/harness/child.ts';
import { waitFor } from '../support/wait.ts';

const TIMEOUT_MS = 300_000;

let demo: Child;
/** Commands by what the demo says of them. */
let pastes: ReadonlyMap<string, readonly string[]>;
beforeAll(async () => {
  const args = [checkoutPath('.build', 'demo', 'main.js'), '--keep'];
  demo = startChild({ command: process.execPath, args, ownProcessGroup: true });
  await demo.waitForLine(/^Ctrl-C stops/);
  pastes = pastesOf(demo.stdoutLines);
}, TIMEOUT_MS);
afterAll(async () => {
  demo?.signal('SIGINT');
  expect((await demo?.exited)?.code).toBe(0);
}, TIMEOUT_MS);

function pastesOf(lines: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  let commands: string[] = [];
  for (const line of lines.slice(lines.indexOf('Paste into another terminal:'))) {
    if (line.startsWith('# ')) {
      commands = [];
      found.set(line.slice(2), commands);
    } else if (/^(?:\/|curl |tail )/.test(line)) commands.push(line);
  }
  return found;
}

function commandsOf(what: string): readonly string[] {
  const commands = pastes.get(what);
  if (commands === undefined || commands.length === 0)
    throw new Error(`the demo prints nothing for: ${what}`);
  return commands;
}

/** Output of the last of the commands, with any exit code. */
async function run(commands: readonly string[]): Promise<string> {
  let output = '';
  for (const command of commands) {
    const ended = promisify(execFile)('bash', ['-c', command]);
    output = (await ended.catch((error: { stdout: string }) => error)).stdout;
  }
  return output;
}

const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

const [READ, WRITE, CLAIM] = [
  'read as billing: allowed',
  'write as billing: allowed',
  'write as reporting, which claims that it may: denied',
];

it(
  'what is said to be allowed is allowed, what is said to be denied is denied',
  async () => {
    const outcomes = new Map<string, string>();
    for (const [what, commands] of pastes) {
      if (!/(?:allowed|denied)/.test(what) || what.startsWith('revoke') || what.includes('another')) continue;
      if (what === 'read with it: allowed')
        await run(commandsOf('enroll another pod of billing, which holds nothing but a token'));
      const wanted = what.includes('allowed') ? 200 : 400;
      const status = await waitFor(what, async () => {
        const found = statusOf(await run(commands));
        // A key that was just enrolled reaches the sidecar a moment later.
        return what === 'read with it: allowed' && found !== 200 ? undefined : found;
      });
      outcomes.set(what, (wanted === 200 ? status === 200 : status >= wanted) ? 'as said' : String(status));
    }
    expect(outcomes.size).toBeGreaterThan(8);
    expect([...outcomes].filter(([, outcome]) => outcome !== 'as said')).toEqual([]);
  },
  TIMEOUT_MS,
);

type Grants = { client_id: string; grants: { resource: string; access: string }[] }[];

it.each([
  { kind: 'nothing', change: () => {}, denied: [] },
  {
    kind: 'billing may only read',
    change: ({ clients }: { clients: Grants }) => {
      for (const grant of clients.find(({ client_id: id }) => id === 'billing')?.grants ?? [])
        grant.access = 'read';
    },
    denied: [WRITE],
  },
  {
    kind: 'billing may nothing',
    change: ({ clients }: { clients: Grants }) => {
      for (const client of clients) if (client.client_id === 'billing') client.grants = [];
    },
    denied: [READ, WRITE],
  },
])(
  "a preview over the demo's decisions says what the sidecar then does: $kind",
  async ({ change, denied }) => {
    const [previewLine = ''] = commandsOf(
      'change site.yaml, then see which of the decisions so far would change',
    );
    const [applyLine = ''] = commandsOf('and apply it');
    const file = /-f (\S+)/.exec(applyLine)?.[1] ?? '';
    const audit = /--decisions (\S+)/.exec(previewLine)?.[1] ?? '';
    const before = await readFile(file, 'utf8');
    for (const what of [READ, WRITE, CLAIM]) await run(commandsOf(what));
    const decisions = `${file}.decisions`;
    await writeFile(decisions, await readFile(audit));
    const site = parse(before);
    change(site);
    await writeFile(file, stringify(site));
    const preview = previewLine.replace(`--decisions ${audit}`, `--decisions ${decisions}`);
    const report: PreviewReport = JSON.parse(await run([`${preview} --prune --output json`]));
    const judged = report.judged + Object.values(report.not_judged).reduce((sum, count) => sum + count, 0);
    expect(judged).toBe((await readFile(decisions, 'utf8')).split('\n').length - 1);

    await run([`${applyLine} --prune`]);
    for (const what of [READ, WRITE, CLAIM]) {
      const isDenied = denied.includes(what) || what === CLAIM;
      await waitFor(`${what} after ${isDenied}`, async () =>
        (statusOf(await run(commandsOf(what))) === 200) !== isDenied ? true : undefined,
      );
    }
    const routes = new Set(
      report.newly_denied.callers.map(({ route_id, subject }) => `${route_id} ${subject}`),
    );
    expect([...routes].sort()).toEqual(
      denied
        .map((what) => (what === READ ? 'orders-read' : 'orders-write'))
        .map((route) => `${route} client:billing`)
        .sort(),
    );
    await writeFile(file, before);
    await run([applyLine]);
    for (const what of [READ, WRITE])
      await waitFor(what, async () => (statusOf(await run(commandsOf(what))) === 200 ? true : undefined));
  },
  TIMEOUT_MS,
);
