/** How the demo's callers send requests: always to Envoy, always over HTTP. */
import { readFile, writeFile } from 'node:fs/promises';
import { type HeaderLine, headerValues } from '../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../src/tools/conformance/wire/http1.ts';
import { type Answer, answerOf, notSent, parseRequestOutput, type ReceivedAnswer } from './answer.ts';
import type { DemoEnvironment } from './environment.ts';
import { lastErrorOf } from './proofgate-cli.ts';
import { requestWithCurl } from './signer-plane.ts';
import type { Caller } from './site.ts';

export interface DemoRequest {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  readonly body?: string;
}

/** `proofgate request`: signs and sends. */
export function request(
  demo: DemoEnvironment,
  caller: Caller,
  { method, target, body }: DemoRequest,
  moreFlags: readonly string[] = [],
): Promise<Answer> {
  return observed(demo, target, async () => {
    const bodyFlags = await bodyFileFlags(demo, caller.name, body);
    const args = ['request', method, `${demo.origin}${target}`, ...callerFlags(demo, caller), ...bodyFlags];
    const { stdout, stderr } = await demo.cli.run([...args, ...moreFlags, '--output', 'json']);
    const received = parseRequestOutput(stdout);
    if (received === undefined) throw new NotSent(lastErrorOf(stderr));
    return received;
  });
}

/** The program itself refused, before anything was sent; the message begins with its code. */
class NotSent extends Error {}

/** Signs with a profile file in which the caller claims more than it was granted. */
export function requestBeyondGrants(
  demo: DemoEnvironment,
  caller: Caller,
  sent: DemoRequest,
): Promise<Answer> {
  return request(demo, caller, sent, ['--profile-file', demo.files.overreachingProfile(caller)]);
}

/** As a SPIFFE workload: key and passport come with its SVID, the profile from the broker. */
export function requestWithSvid(demo: DemoEnvironment, { method, target }: DemoRequest): Promise<Answer> {
  return observed(demo, target, async () => {
    const { stdout, stderr } = await demo.cli.run([
      ...['request', method, `${demo.origin}${target}`, ...brokerFlags(demo), '--output', 'json'],
    ]);
    const received = parseRequestOutput(stdout);
    if (received === undefined) throw new NotSent(lastErrorOf(stderr));
    return received;
  });
}

/** A program that does not sign, with the signer's address in the place of the API's. */
export function requestThroughSigner(demo: DemoEnvironment, target: string): Promise<Answer> {
  return observed(demo, target, () => requestWithCurl(`${demo.signerUrl}${target}`));
}

/** The flags with which a SPIFFE workload signs. */
export function brokerFlags({ brokerUrl, files }: DemoEnvironment): readonly string[] {
  const broker = ['--broker-url', brokerUrl, '--broker-ca-file', files.brokerCa];
  return [...broker, '--spiffe-socket', `unix:${files.workloadApi}`];
}

/** The error that a caller gets whose enrollment has no profile for the route. */
export async function requestWithoutProfile(
  demo: DemoEnvironment,
  caller: Caller,
  sent: DemoRequest,
): Promise<Answer> {
  try {
    return await request(demo, caller, sent);
  } catch (error) {
    if (!(error instanceof NotSent)) throw error;
    const [code = ''] = error.message.split(':');
    return notSent(code);
  }
}

/** `proofgate sign`: the headers go to a file of that name. */
export async function sign(
  demo: DemoEnvironment,
  caller: Caller,
  { method, target, body }: DemoRequest,
  name: string,
): Promise<void> {
  const bodyFlags = await bodyFileFlags(demo, name, body);
  const args = ['sign', method, `${demo.origin}${target}`, ...callerFlags(demo, caller), ...bodyFlags];
  await demo.cli.runForJson([...args, '--out', demo.files.headers(name)]);
}

/** Sends the file as another HTTP client would: `curl -H @FILE`. */
export async function sendSigned(demo: DemoEnvironment, sent: DemoRequest, name: string): Promise<Answer> {
  return send(demo, sent, await signedHeaders(demo, name));
}

/** Sends as a thief would who has the passport only. */
export async function sendPassportAlone(
  demo: DemoEnvironment,
  sent: DemoRequest,
  name: string,
): Promise<Answer> {
  const headers = await signedHeaders(demo, name);
  return send(
    demo,
    sent,
    headers.filter(([header]) => header.toLowerCase() === 'authorization'),
  );
}

/** Any headers, signed or not. */
export function send(
  demo: DemoEnvironment,
  sent: DemoRequest,
  headers: readonly HeaderLine[],
): Promise<Answer> {
  const { method, target, body } = sent;
  const authority = new URL(demo.origin).host;
  return observed(demo, target, async () => {
    const wire = { method, target, authority, headers, ...(body === undefined ? {} : { body }) };
    const response = await http1Client(demo.envoy).send(wire);
    const [reason] = headerValues(response.headers, 'x-proofgate-reason');
    return { status: response.status, reason, body: response.body.toString('utf8') };
  });
}

async function signedHeaders(demo: DemoEnvironment, name: string): Promise<readonly HeaderLine[]> {
  const lines = (await readFile(demo.files.headers(name), 'utf8')).split('\n');
  return lines.flatMap((line): readonly HeaderLine[] => {
    const colon = line.indexOf(': ');
    return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 2)]];
  });
}

/** The flags with which a caller signs: its enrollment is in a file beside its key. */
export function callerFlags({ files }: DemoEnvironment, caller: Caller): readonly string[] {
  return ['--key', files.key(caller.name)];
}

async function bodyFileFlags(demo: DemoEnvironment, name: string, body?: string): Promise<readonly string[]> {
  if (body === undefined) return [];
  const path = demo.files.body(name);
  await writeFile(path, body);
  return ['--body-file', path];
}

/** Cases may run beside each other, each with targets of its own. */
async function observed(
  demo: DemoEnvironment,
  target: string,
  exchange: () => Promise<ReceivedAnswer>,
): Promise<Answer> {
  const received = () => demo.upstream.requests.filter(({ url }) => url === target).length;
  const before = received();
  const answer = await exchange();
  return answerOf(answer, received() > before);
}
