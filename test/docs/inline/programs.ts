/** Checks command lines of programs other than `proofgate`, with the program itself when it is installed. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filesOfCheckout, isInCheckout, readText } from '../../support/docs/markdown.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { faultOfLine } from './proofgate.ts';
import { faultOfValuePath } from './value-paths.ts';

type Fault = string | undefined;

/** @param words without the program */
export type LineCheck = (words: readonly string[]) => Fault | Promise<Fault>;

const HELM = checkoutPath('.cache', 'helm', 'bin', 'helm');
const EGCTL = checkoutPath('.cache', 'gateways', 'egctl');
const CADDY = checkoutPath('.cache', 'proxies', 'bin', 'caddy');
const KUBECTL = checkoutPath('.cache', 'kubernetes', 'bin', 'kubectl');

/** Programs whose command lines may occur in documents. A program without a check states the reason. */
export const PROGRAMS: { readonly [name: string]: LineCheck | { readonly readOnly: string } } = {
  proofgate: faultOfLine,
  'bin/proofgate': faultOfLine,
  make: faultOfMake,
  npm: faultOfNpm,
  helm: (words) => faultOfCobra(HELM, words),
  kubectl: (words) => faultOfCobra(KUBECTL, words),
  openssl: ([command = '', ...words]) =>
    command === '' ? undefined : unknownFlag(words, 'openssl', [command, '-help']),
  caddy: (words) => (words[0] === 'adapt' ? faultOfAdapt(words) : faultOfLine(['caddy', ...words])),
  curl: (words) => unknownFlag(words, 'curl', ['--help', 'all']),
  ssh: (words) => faultOfRun('ssh', ['-G', '-F', 'none', ...words, 'host']),
  pg_dump: (words) => unknownFlag(words, 'pg_dump', ['--help']),
  egctl: (words) => faultOfCobra(EGCTL, words),
  go: { readOnly: 'only named' },
  node: { readOnly: 'only named' },
  docker: { readOnly: 'it asks an engine; ../sessions/image.sh holds its build against the Dockerfile' },
  istioctl: { readOnly: 'it would be built from all of Istio, for one line' },
};

const BUILT: { readonly [program: string]: readonly [file: string, by: string] } = {
  helm: [HELM, 'make helm-tools'],
  kubectl: [KUBECTL, 'make kubernetes'],
  egctl: [EGCTL, 'scripts/install-gateway-translators.sh'],
};
/** Whether `make test-extended` builds the program, and `make test` does not. */
export function isBuilt(program: string): boolean {
  return Object.hasOwn(BUILT, program);
}

/** Programs that usually come with packages the tests need, but may be missing. */
const OPTIONAL = ['ssh', 'pg_dump'];

/** The reason not to run a program; undefined when it is available. */
export function whyNotAsked(program: string): string | undefined {
  const [file = '', by] = BUILT[program] ?? [];
  if (by !== undefined) return existsSync(file) ? undefined : `${program} is not there: ${by}`;
  const isThere = !OPTIONAL.includes(program) || spawnSync(program, ['-V']).error === undefined;
  return isThere ? undefined : `${program} is not there`;
}

/** `make bench PARTS=check`: checks that the target exists and that something reads the variable. */
function faultOfMake(words: readonly string[]): Fault {
  const makefile = readText('Makefile');
  const targets = new Set([...makefile.matchAll(/^([a-z][a-z-]*):/gm)].map(([, target]) => target));
  const unknown = words.filter((word) => !word.includes('=')).find((word) => !targets.has(word));
  const [variable] = words.flatMap((word) => {
    const [, name] = /^([A-Z_]+)=/.exec(word) ?? [];
    return name === undefined || makefile.includes(`$(${name})`) ? [] : [name];
  });
  return unknown ?? variable ?? words.flatMap(unknownChoice)[0];
}

/** Allowed values of a target's variable, when they are a fixed set. */
const CHOICES: { readonly [variable: string]: () => readonly string[] } = {
  PARTS: () =>
    filesOfCheckout('bench', '.ts').flatMap((file) => quotedIn(readText(file), /^ {2}name: '.*',$/gm)),
  TARGETS: () => quotedIn(readText('scripts/fuzz.mjs'), /^const ALL = .*$/gm),
};

function quotedIn(text: string, lines: RegExp): readonly string[] {
  return (text.match(lines) ?? []).flatMap((line) =>
    [...line.matchAll(/'([^']+)'/g)].map(([, one = '']) => one),
  );
}

function unknownChoice(word: string): readonly string[] {
  const [, variable = '', chosen = ''] = /^([A-Z_]+)=(.*)$/.exec(word) ?? [];
  const known = CHOICES[variable]?.();
  return known === undefined ? [] : chosen.split(' ').filter((one) => !known.includes(one));
}

/** Caddy's own command; `caddy lint` is one of ours. */
function faultOfAdapt([, ...words]: readonly string[]): Fault {
  return existsSync(CADDY) ? unknownFlag(words, CADDY, ['adapt', '--help']) : undefined;
}

function faultOfNpm([command = '', ...words]: readonly string[]): Fault {
  if (command !== 'run') return unknownFlag(words, 'npm', [command, '--help']);
  const script = words.find((word) => !word.startsWith('-')) ?? '';
  const known: { readonly scripts: object } = JSON.parse(readText('package.json'));
  if (!(script in known.scripts)) return `no script ${script}`;
  const files = words.slice(words.indexOf('--') + 1).filter((word) => word.includes('/'));
  return files.find((file) => !isInCheckout(file));
}

/** Checks flags with the program's own help. */
function unknownFlag(words: readonly string[], program: string, help: readonly string[]): Fault {
  const { status, stderr, stdout } = spawnSync(program, help, { encoding: 'utf8' });
  if (status !== 0) return `${program} ${help.join(' ')} ends with ${status}`;
  const known = new Set(`${stdout}${stderr}`.match(/(?<![\w-])--?[A-Za-z][\w-]*/g));
  return words
    .filter((word) => word.startsWith('-'))
    .map((word) => word.replace(/=.*/, ''))
    .find((flag) => !known.has(flag));
}

/** Runs the line; returns the error message when the program rejects it. */
function faultOfRun(program: string, words: readonly string[]): Fault {
  const { status, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  return status === 0 ? undefined : stderr || `ends with ${status}`;
}

/** An address that refuses connections at once. */
const NOWHERE = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'none', cluster: { server: 'https://127.0.0.1:9' } }],
  users: [{ name: 'none', user: { token: 'none' } }],
  contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
  'current-context': 'none',
};

/**
 * helm and similar programs parse flags before `--help`, and operands before they contact the cluster. This cluster is
 * unreachable.
 *
 * A line with only the name of a program or a command mentions it; its operands are up to the reader.
 */
function faultOfCobra(program: string, words: readonly string[]): Fault {
  if (words.length === 0) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'proofgate-lines-'));
  try {
    writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(NOWHERE), { mode: 0o600 });
    const ask = (args: readonly string[]) =>
      spawnSync(program, args, {
        cwd: checkoutPath(),
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'kubeconfig') },
      });
    const end = words.indexOf('--');
    const own = end === -1 ? words : words.slice(0, end);
    const help = ask([...own, '--help']);
    if (help.status !== 0) return help.stderr;
    const [, usage = ''] = /^Usage:\s+\w+ (.*)$/m.exec(help.stdout) ?? [];
    const name = (/^(?:[a-z][a-z-]*(?: |$))+/.exec(usage)?.[0] ?? '').trim();
    const isOfThis = ` ${own.join(' ')} `.includes(` ${name} `);
    if (name === '' || !isOfThis || /^\S+ (?:SUBCOMMAND|COMMAND|\[command\])/.test(usage))
      return `no such command: ${usage}`;
    const unknownValue = setValues(words).map(faultOfValuePath).find(Boolean);
    if (unknownValue !== undefined || own.join(' ') === name) return unknownValue;
    // The checkout's chart replaces the packed chart of a release.
    const { stderr } = ask(
      words.map((word) => word.replace(/^.*proofgate-chart-VERSION\.tgz$/, 'helm/proofgate')),
    );
    return /(?:connection|was) refused|cluster unreachable|repo \S+ not found/.test(stderr)
      ? undefined
      : stderr || 'asks no cluster';
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** `--set verifier.replicas=2,…` */
function setValues(words: readonly string[]): readonly string[] {
  return words.flatMap((word, index) => {
    const [, own] = /^--set(?:-string|-file|-json)?=(.*)$/.exec(word) ?? [];
    const text = own ?? (/^--set(?:-string|-file|-json)?$/.test(word) ? words[index + 1] : undefined);
    return text?.split(',').map((one) => one.replace(/=.*/s, '')) ?? [];
  });
}
