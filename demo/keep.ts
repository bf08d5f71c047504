/** `--keep`: prints command lines that work unchanged, from any folder, as long as the demo runs. */
import { writeFile } from 'node:fs/promises';
import { brokerFlags, callerFlags } from './caller-requests.ts';
import { projectToken } from './enrollment-plane.ts';
import type { DemoEnvironment } from './environment.ts';
import { proofgateProgram } from './proofgate-cli.ts';
import { curl } from './signer-plane.ts';
import { callers, siteId, tokenLifeSeconds } from './site.ts';

interface Paste {
  readonly what: string;
  readonly commands: readonly string[];
}

/** @param signInUrl of the console */
export async function pasteLines(demo: DemoEnvironment, signInUrl: string): Promise<readonly string[]> {
  const { files } = demo;
  await writeFile(files.body('order'), '{"item":"lamp","count":1}\n');
  const { billing } = callers;
  await projectToken(demo.issuer, files, {
    caller: billing,
    pod: newPod,
    expiresInSeconds: tokenLifeSeconds,
  });
  const pastes = [
    ...requestPastes(demo),
    ...curlPastes(demo),
    ...workloadPastes(demo),
    ...spiffePastes(demo),
    ...operatorPastes(demo),
    ...sidecarPastes(demo),
  ];
  return [
    `Left running, its files in ${files.directory}; keys end an hour after they were issued.`,
    '',
    `The console: open ${signInUrl}, which signs you in`,
    '',
    'Paste into another terminal:',
    ...pastes.flatMap(({ what, commands }) => ['', `# ${what}`, ...commands]),
    '',
    'Ctrl-C stops and removes everything.',
  ];
}

/** Has a token, and nothing else yet. */
const newPod = 'another';

function requestPastes(demo: DemoEnvironment): readonly Paste[] {
  const { billing, spare, reporting } = callers;
  const { files } = demo;
  const body = ['--body-file', files.body('order')];
  const claim = ['--profile-file', files.overreachingProfile(reporting)];
  return [
    { what: 'read as billing: allowed', commands: [requestLine(demo, billing.name, 'GET', '/orders/7')] },
    {
      what: 'write as billing: allowed',
      commands: [requestLine(demo, billing.name, 'POST', '/orders', body)],
    },
    {
      what: 'write as reporting, which claims that it may: denied',
      commands: [requestLine(demo, reporting.name, 'POST', '/orders', [...body, ...claim])],
    },
    {
      what: 'read with the revoked key: denied',
      commands: [requestLine(demo, spare.name, 'GET', '/orders/7')],
    },
  ];
}

/** From a token to a key, as at the beginning. */
function workloadPastes(demo: DemoEnvironment): readonly Paste[] {
  const { files, controlUrl, policies } = demo;
  const enrollLine = commandLine([
    ...[proofgateProgram, 'enroll', '--control-url', controlUrl],
    ...['--policy', policies.get(callers.billing.serviceAccount)?.reference ?? ''],
    ...['--proof-file', files.token(newPod), '--private-key-out', files.key(newPod)],
  ]);
  const statusLine = commandLine([proofgateProgram, 'status', '--key', files.key(newPod)]);
  return [
    { what: 'enroll another pod of billing, which holds nothing but a token', commands: [enrollLine] },
    { what: 'its key: when it ends, and whether the sidecar has it', commands: [statusLine] },
    { what: 'read with it: allowed', commands: [requestLine(demo, newPod, 'GET', '/orders/7')] },
  ];
}

function spiffePastes(demo: DemoEnvironment): readonly Paste[] {
  const words = [proofgateProgram, 'request', 'GET', `${demo.origin}/salaries/7`, ...brokerFlags(demo)];
  return [
    {
      what: 'read with an X.509-SVID, as payroll: allowed',
      commands: [commandLine([...words, '--include'])],
    },
  ];
}

function operatorPastes(demo: DemoEnvironment): readonly Paste[] {
  const { operator, keys, policies } = demo;
  const { reporting } = callers;
  const ctl = (...args: readonly string[]) => commandLine([proofgateProgram, ...operator.words(...args)]);
  const ofSite = (kind: string) => ctl('get', kind, '--site', siteId);
  return [
    {
      what: 'what Control holds',
      commands: ['sources', 'policies', 'keys', 'enrollments', 'targets'].map(ofSite),
    },
    { what: 'which revision the sidecar has', commands: [ctl('get', 'propagation', siteId)] },
    {
      what: 'what a platform team puts into its pods',
      commands: [ctl('get', 'command', policies.get('billing')?.id ?? '')],
    },
    {
      what: 'revoke the key of reporting; its next request is denied',
      commands: [
        ctl('revoke', keys.get(reporting)?.keyId ?? '', '--yes'),
        requestLine(demo, reporting.name, 'GET', '/orders/7'),
      ],
    },
    { what: 'who did what', commands: [ctl('get', 'audit')] },
    {
      what: 'change site.yaml, then see which of the decisions so far would change',
      commands: [ctl('preview', '-f', demo.files.siteYaml, '--decisions', demo.files.audit)],
    },
    { what: 'and apply it', commands: [ctl('apply', '-f', demo.files.siteYaml)] },
  ];
}

function curlPastes(demo: DemoEnvironment): readonly Paste[] {
  const headers = demo.files.headers('order');
  const url = `${demo.origin}/orders/7`;
  const signed = [proofgateProgram, 'sign', 'GET', url, ...callerFlags(demo, callers.billing)];
  const signLine = commandLine([...signed, '--out', headers]);
  // The answers end without a line break; the shell's prompt is to stand on a line of its own.
  const shown = [...curl, '-i', '-w', '\\n'];
  const curlLine = commandLine([...shown, '-H', `@${headers}`, url]);
  return [
    { what: 'sign, then send with curl: allowed', commands: [signLine, curlLine] },
    { what: 'the same again: denied as a replay', commands: [curlLine] },
    { what: 'without a signature: denied', commands: [commandLine([...shown, url])] },
    {
      what: 'the same through the signer: allowed',
      commands: [commandLine([...shown, `${demo.signerUrl}/orders/7`])],
    },
  ];
}

function sidecarPastes({ adminUrl, files }: DemoEnvironment): readonly Paste[] {
  const metrics = commandLine([...curl, `${adminUrl}/metrics`]);
  return [
    { what: 'is the sidecar ready', commands: [commandLine([...curl, `${adminUrl}/readyz`])] },
    { what: 'decisions counted', commands: [`${metrics} | grep ^proofgate_decisions_total`] },
    { what: 'decisions recorded', commands: [commandLine(['tail', '-n', '3', files.audit])] },
  ];
}

function requestLine(
  { files, origin }: DemoEnvironment,
  pod: string,
  method: string,
  target: string,
  more: readonly string[] = [],
): string {
  const words = ['request', method, `${origin}${target}`, '--key', files.key(pod), '--include'];
  return commandLine([proofgateProgram, ...words, ...more]);
}

function commandLine(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

/** Quotes a word for the shell. */
function shellWord(text: string): string {
  return /^[\w./:@=,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Resolves when a part ends by itself, with a line that names it. */
export async function firstEnd({
  verifier,
  control,
  broker,
  signer,
  envoy,
}: DemoEnvironment): Promise<string> {
  return Promise.race([
    verifier.exited.then(() => `the sidecar ended by itself: ${verifier.stderrLines.at(-1) ?? ''}`),
    control.exited.then(() => `Control ended by itself: ${control.stderrLines.at(-1) ?? ''}`),
    broker.exited.then(() => `the broker ended by itself: ${broker.stderrLines.at(-1) ?? ''}`),
    signer.exited.then(() => `the signer ended by itself: ${signer.stderrLines.at(-1) ?? ''}`),
    envoy.exited.then(() => `Envoy ended by itself: ${envoy.stderrLines.at(-1) ?? ''}`),
  ]);
}
