/** `--keep`: command lines that work as they stand, from any folder, for as long as the demo is left running. */
import { writeFile } from 'node:fs/promises';
import { callerFlags } from './caller-requests.ts';
import { proofgateProgram } from './proofgate-cli.ts';
import { type Caller, callers } from './site.ts';
import type { World } from './world.ts';

interface Paste {
  readonly what: string;
  readonly commands: readonly string[];
}

export async function pasteLines(world: World): Promise<readonly string[]> {
  const { files } = world;
  await writeFile(files.body('order'), '{"item":"lamp","count":1}\n');
  const pastes = [...requestPastes(world), ...curlPastes(world), ...operatorPastes(world)];
  return [
    `Left running, its files in ${files.directory}. Paste into another terminal:`,
    ...pastes.flatMap(({ what, commands }) => ['', `# ${what}`, ...commands]),
    '',
    'Ctrl-C stops and removes everything.',
  ];
}

function requestPastes(world: World): readonly Paste[] {
  const { billing, laptop, reporting } = callers;
  const body = ['--body-file', world.files.body('order')];
  const requestLine = (caller: Caller, method: string, target: string, more: readonly string[] = []) =>
    proofgateLine(world, ['request', method, target], caller, ['--include', ...more]);
  return [
    { what: 'read as billing: allowed', commands: [requestLine(billing, 'GET', '/orders/7')] },
    { what: 'write as billing: allowed', commands: [requestLine(billing, 'POST', '/orders', body)] },
    { what: 'write as reporting: denied', commands: [requestLine(reporting, 'POST', '/orders', body)] },
    { what: 'read with the revoked key: denied', commands: [requestLine(laptop, 'GET', '/orders/7')] },
  ];
}

function curlPastes(world: World): readonly Paste[] {
  const headers = world.files.headers('order');
  const url = `${world.origin}/orders/7`;
  const signLine = proofgateLine(world, ['sign', 'GET', '/orders/7'], callers.billing, ['--out', headers]);
  // The answers end without a line break; the shell's prompt is to stand on a line of its own.
  const shown = [...curl, '-i', '-w', '\\n'];
  const curlLine = commandLine([...shown, '-H', `@${headers}`, url]);
  return [
    { what: 'sign, then send with curl: allowed', commands: [signLine, curlLine] },
    { what: 'the same again: denied as a replay', commands: [curlLine] },
    { what: 'without a signature: denied', commands: [commandLine([...shown, url])] },
  ];
}

function operatorPastes({ adminUrl, files }: World): readonly Paste[] {
  const metrics = commandLine([...curl, `${adminUrl}/metrics`]);
  return [
    { what: 'is the sidecar ready', commands: [commandLine([...curl, `${adminUrl}/readyz`])] },
    { what: 'decisions counted', commands: [`${metrics} | grep ^proofgate_decisions_total`] },
    { what: 'decisions recorded', commands: [commandLine(['tail', '-n', '3', files.audit])] },
  ];
}

const curl = ['curl', '-sS', ...(usesProxy(process.env) ? ['--noproxy', '127.0.0.1'] : [])];

/** Without the flag curl would look for 127.0.0.1 behind the proxy. */
function usesProxy(env: NodeJS.ProcessEnv): boolean {
  return [env.http_proxy, env.ALL_PROXY, env.all_proxy].some((value) => (value ?? '') !== '');
}

function proofgateLine(
  world: World,
  [command, method, target]: readonly [command: string, method: string, target: string],
  caller: Caller,
  more: readonly string[],
): string {
  const url = `${world.origin}${target}`;
  return commandLine([proofgateProgram, command, method, url, ...callerFlags(world, caller), ...more]);
}

function commandLine(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

/** A word as a shell reads it back. */
function shellWord(text: string): string {
  return /^[\w./:@=,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Resolves when a part has ended by itself, with a line that says which. */
export async function firstEnd({ verifier, freshener, envoy }: World): Promise<string> {
  return Promise.race([
    verifier.exited.then(() => `the sidecar ended by itself: ${verifier.stderrLines.at(-1) ?? ''}`),
    freshener.exited.then(() => `bundle freshen ended by itself: ${freshener.stderrLines.at(-1) ?? ''}`),
    envoy.exited.then(() => `Envoy ended by itself: ${envoy.stderrLines.at(-1) ?? ''}`),
  ]);
}
