/** The ways in which the demo's callers send requests: always to Envoy, always over HTTP. */
import { readFile, writeFile } from 'node:fs/promises';
import { type HeaderLine, headerValues } from '../test/e2e/harness/exchange.ts';
import { http1Client } from '../test/e2e/harness/http1.ts';
import { type Answer, answerOf, parseRequestOutput, type ReceivedAnswer } from './answer.ts';
import type { Caller } from './site.ts';
import type { World } from './world.ts';

export interface DemoRequest {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  readonly body?: string;
}

/** `proofgate request`: signs and sends. */
export function request(
  world: World,
  caller: Caller,
  { method, target, body }: DemoRequest,
): Promise<Answer> {
  return observed(world, async () => {
    const bodyFlags = await bodyFileFlags(world, caller.name, body);
    const args = ['request', method, `${world.origin}${target}`, ...callerFlags(world, caller), ...bodyFlags];
    const { stdout, stderr } = await world.cli.run([...args, '--output', 'json']);
    const received = parseRequestOutput(stdout);
    if (received === undefined) throw new Error(stderr);
    return received;
  });
}

/** `proofgate sign`: the headers go to a file of that name. */
export async function sign(
  world: World,
  caller: Caller,
  { method, target, body }: DemoRequest,
  name: string,
): Promise<void> {
  const bodyFlags = await bodyFileFlags(world, name, body);
  const args = ['sign', method, `${world.origin}${target}`, ...callerFlags(world, caller), ...bodyFlags];
  await world.cli.runForJson([...args, '--out', world.files.headers(name)]);
}

/** What another HTTP client would do with the file: `curl -H @FILE`. */
export async function sendSigned(world: World, sent: DemoRequest, name: string): Promise<Answer> {
  return send(world, sent, await signedHeaders(world, name));
}

/** What a thief can do who got hold of the passport alone. */
export async function sendPassportAlone(world: World, sent: DemoRequest, name: string): Promise<Answer> {
  const headers = await signedHeaders(world, name);
  return send(
    world,
    sent,
    headers.filter(([header]) => header.toLowerCase() === 'authorization'),
  );
}

/** Any headers, signed or not. */
export function send(world: World, sent: DemoRequest, headers: readonly HeaderLine[]): Promise<Answer> {
  const { method, target, body } = sent;
  const authority = new URL(world.origin).host;
  return observed(world, async () => {
    const wire = { method, target, authority, headers, ...(body === undefined ? {} : { body }) };
    const response = await http1Client(world.envoy).send(wire);
    const [reason] = headerValues(response.headers, 'x-proofgate-reason');
    return { status: response.status, reason, body: response.body.toString('utf8') };
  });
}

async function signedHeaders(world: World, name: string): Promise<readonly HeaderLine[]> {
  const lines = (await readFile(world.files.headers(name), 'utf8')).split('\n');
  return lines.flatMap((line): readonly HeaderLine[] => {
    const colon = line.indexOf(': ');
    return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 2)]];
  });
}

/** The flags with which a caller signs. */
export function callerFlags({ files }: World, caller: Caller): readonly string[] {
  return ['--key', files.key(caller), '--profile-file', files.profile(caller)];
}

async function bodyFileFlags(world: World, name: string, body?: string): Promise<readonly string[]> {
  if (body === undefined) return [];
  const path = world.files.body(name);
  await writeFile(path, body);
  return ['--body-file', path];
}

async function observed(world: World, exchange: () => Promise<ReceivedAnswer>): Promise<Answer> {
  const before = world.upstream.requests.length;
  const received = await exchange();
  return answerOf(received, world.upstream.requests.length > before);
}
