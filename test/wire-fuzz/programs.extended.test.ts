/**
 * Generated HTTP/1.1 requests at the programs that are no enforcement points. The signer sends nothing that it did not sign, and
 * each signature once; the broker and Control do nothing for a stranger. All go on serving, within a bound of memory.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { parseTranscript } from '../../src/protocol/transcript.ts';
import { TRANSCRIPT_HEADER } from '../../src/protocol/wire-names.ts';
import { headerValues, type WireAddress } from '../../src/tools/conformance/wire/exchange.ts';
import { makeBrokerFolder, startBrokerProgram } from '../support/broker/broker-program.ts';
import { ORIGIN, writeBillingKey } from '../support/caller/egress-fixture.ts';
import { LAUNCHER } from '../support/cli/compiled-cli.ts';
import { startControlProgram } from '../support/control/control-program.ts';
import { SpiffeAuthority } from '../support/fakes/spiffe-authority.ts';
import { type Child, startChild } from '../support/harness/child.ts';
import { proofgateCommand } from '../support/harness/program.ts';
import { startUpstream } from '../support/harness/upstream.ts';
import type { Http1Case } from '../support/hostile/cases.ts';
import { attackHttp1 } from '../support/hostile/http1-attack.ts';
import { alterations } from '../support/hostile/judge.ts';
import type { Template } from '../support/hostile/template.ts';
import { createSite } from '../support/site/site.ts';
import { httpGet } from '../support/wait.ts';
import { http1Case, http1CaseTo } from './http1-grammar.ts';
import { casesOf, highestResidentMib, MAX_RESIDENT_MIB, REQUESTS } from './run.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Program {
  readonly child: Child;
  readonly address: WireAddress;
  /** `GET` of it answers 200 while the program lives. */
  readonly liveUrl: string;
}

/** What programs write that sign nothing themselves. */
function unsigned(host: string, one: Omit<Http1Case, 'name'>, id: string): Template {
  const bodies = one.signs.map(({ body = '' }) => body);
  return {
    signed: [],
    proofLines: () => [],
    fill: (text) =>
      text
        .replaceAll('Host: api.shop.example', `Host: ${host}`)
        .replaceAll('{id}', id)
        .replaceAll(/\{proof(?:\.\d)?\}/g, '')
        .replaceAll(/\{(body|length|hex)\.(\d)(?:\+(\d))?\}/g, (_, name, number, add = '0') => {
          const body = bodies[Number(number) - 1] ?? '';
          if (name === 'body') return body;
          return (body.length + Number(add)).toString(name === 'hex' ? 16 : 10);
        }),
  };
}

const LANES = 48;

/** @returns the statuses of all answers, and how often each came */
async function attack(program: Program, cases: readonly (Http1Case & { readonly id: string })[]) {
  const { address, child, liveUrl } = program;
  const host = `${address.host}:${address.port}`;
  const statuses = new Map<string, number>();
  const waiting = [...cases];
  const runLane = async () => {
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      const template = unsigned(host, one, one.id);
      const last = `GET /v1/orders/last?case=${one.id} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const { byStream } = await attackHttp1(address, one, template, last);
      const text = (byStream.get(0) ?? Buffer.alloc(0)).toString('latin1');
      for (const [, status = ''] of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, runLane));
  expect(child.exitStatus()).toBeUndefined();
  expect((await httpGet(liveUrl)).status).toBe(200);
  expect(highestResidentMib(child.pid)).toBeLessThan(MAX_RESIDENT_MIB);
  return statuses;
}

it('the signer: what leaves is signed, as it is, and once', async () => {
  const site = await createSite();
  const folder = await mkdtemp(join(tmpdir(), 'pg-wire-fuzz-'));
  const upstream = await startUpstream();
  ends.push(() => Promise.all([site.remove(), upstream.stop(), rm(folder, { recursive: true })]));
  const key = join(folder, 'key.pem');
  await writeBillingKey(site, key);
  const child = startChild(
    proofgateCommand([
      ...['signer', '--key', key, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ...['--upstream', ORIGIN, '--connect-to', `127.0.0.1:${upstream.port}`],
    ]),
  );
  ends.push(() => child.stop());
  const [, port] = await child.waitForLine(/"listen":"127\.0\.0\.1:(\d+)"/);
  const [, admin] = await child.waitForLine(/"admin_listen":"(127\.0\.0\.1:\d+)"/);
  const address = { host: '127.0.0.1', port: Number(port) };
  const cases = casesOf(http1Case, REQUESTS).map((one, index) => ({ ...one, id: `c${index}` }));
  await attack({ child, address, liveUrl: `http://${admin}/livez` }, cases);
  // What is still on its way counts too.
  await child.stop();
  // With those that stand where a body may be, and the one that comes last.
  const unsent = new Map(cases.map(({ id, writes }) => [id, writes.join('').split(' HTTP/1.').length]));
  const used = new Set<string>();
  for (const request of upstream.requests) {
    const lines = headerValues(request.headers, TRANSCRIPT_HEADER);
    const transcript = parseTranscript(Buffer.from(lines[0] ?? '', 'base64url'), 'authorization');
    if (lines.length !== 1 || transcript === undefined) throw new Error(`unsigned: ${request.url}`);
    expect(alterations(request, transcript, { isComplete: true, host: undefined })).toEqual([]);
    used.add(transcript.jti);
    const id = /case=(c\d+)/.exec(request.url)?.[1] ?? '';
    unsent.set(id, (unsent.get(id) ?? 0) - 1);
  }
  expect(used.size).toBe(upstream.requests.length);
  expect([...unsent].filter(([, left]) => left < 0)).toEqual([]);
  // A run counts only if a good part was signed.
  expect(used.size).toBeGreaterThan(cases.length / 4);
}, 1_800_000);

/** Everything that changes something, with a version and framing of its own in each request. */
const mutationsOf = (targets: readonly string[]) =>
  targets.flatMap((target) => [
    `POST ${target} HTTP/1.1`,
    `PUT ${target} HTTP/1.1`,
    `POST ${target} HTTP/1.0`,
  ]);

async function expectNothingDone(program: Program, targets: readonly string[]): Promise<void> {
  const cases = casesOf(http1CaseTo(mutationsOf(targets)), REQUESTS).map((one, index) => ({
    ...one,
    id: `c${index}`,
  }));
  const statuses = await attack(program, cases);
  // The answers to a body that is announced and may follow.
  const done = [...statuses].filter(([status]) => /^[23]/.test(status));
  expect(done).toEqual([]);
  expect([...statuses.keys()].filter((status) => /^5/.test(status) && status !== '503')).toEqual([]);
  expect(statuses.size).toBeGreaterThan(1);
}

it('the broker: no passport for a stranger', async () => {
  const folder = await makeBrokerFolder(SpiffeAuthority.create('shop.example'));
  ends.push(() => folder.remove());
  const { adminUrl, child, url } = await startBrokerProgram(folder);
  ends.push(() => child.stop());
  const { hostname, port } = new URL(url);
  const address = { host: hostname, port: Number(port), tls: { ca: folder.tls.ca.cert } };
  await expectNothingDone({ child, address, liveUrl: `${adminUrl}/livez` }, ['/v1/passports', '/v1/proofs']);
}, 1_800_000);

it('Control: no change by a stranger', async () => {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'pg-wire-fuzz-'));
  ends.push(() => rm(dataDirectory, { recursive: true }));
  const { adminUrl, child, url } = await startControlProgram({ launcher: LAUNCHER, dataDirectory });
  ends.push(() => child.stop());
  const { hostname, port } = new URL(url);
  await expectNothingDone(
    { child, address: { host: hostname, port: Number(port) }, liveUrl: `${adminUrl}/livez` },
    ['/v1/environments', '/v1/enrollments', '/v1/sites/site_1/declaration', '/v1/session/bootstrap'],
  );
}, 1_800_000);
