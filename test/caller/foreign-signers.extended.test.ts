/**
 * Requests that other libraries for RFC 9421 sign and send, against the verifier's decision: the examples of
 * docs/operate/http-message-signatures.md as they are, and the PyPI package http-message-signatures in other ways. The npm package
 * is also in test/verifier/decision/http-signature.test.ts.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { formatTime } from '../../src/protocol/rfc3339.ts';
import type { RequestFacts } from '../../src/verifier/decision/facts/request-facts.ts';
import type { Verifier } from '../../src/verifier/verifier.ts';
import { writeKey } from '../support/caller/key-files.ts';
import { MISSING_PYTHON, PYTHON_ENV } from '../support/caller/sdk-drivers.ts';
import { readText } from '../support/docs/markdown.ts';
import { httpSiteContent, httpSiteKeys } from '../support/fixtures/http-signature-site.ts';
import { compileSite, KEY_ID } from '../support/fixtures/snapshot.ts';
import { createTestVerifier, outcomeOf } from '../support/fixtures/test-verifier.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

const PAGE = 'docs/operate/http-message-signatures.md';
/** As the examples name them. */
const ORIGIN = 'https://api.shop.example';
const KEY = 'dk_7f3c';
const AUTH_SITE = 'shop-eu-1';

const folder = mkdtempSync(join(tmpdir(), 'pg-foreign-signers-'));
const outcomes: string[] = [];
let verifier: Verifier;
const server = createServer(async (request, response) => {
  const decision = await verifier.check(factsOf(request, await buffer(request)));
  outcomes.push(outcomeOf(decision));
  response.statusCode = decision.kind === 'allowed' ? 200 : 401;
  response.end();
});
let origin = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const nowSeconds = Math.floor(Date.now() / 1000);
  verifier = createTestVerifier({ snapshot: await siteAt(nowSeconds), nowSeconds, nowMs: Date.now }).verifier;
  writeKey(folder, 'key', httpSiteKeys.billing.privateKey);
  writeKey(folder, 'p256', httpSiteKeys.reporting.privateKey);
  symlinkSync(checkoutPath('node_modules'), join(folder, 'node_modules'));
});
beforeEach(() => {
  outcomes.splice(0);
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

/** The programs have the clock of this machine. */
function siteAt(nowSeconds: number) {
  const content = httpSiteContent();
  content.auth_site = AUTH_SITE;
  content.issued_at = formatTime(nowSeconds);
  content.expires_at = formatTime(nowSeconds + 86_400);
  content.origins = [origin];
  for (const route of content.routes) delete route.origins;
  for (const key of content.derived_keys ?? []) {
    key.expires_at = formatTime(nowSeconds + 86_400);
    if (key.key_id === KEY_ID.billing) key.key_id = KEY;
  }
  return compileSite(content);
}

function factsOf(
  { headers, method = '', rawHeaders, url = '' }: IncomingMessage,
  body: Buffer,
): RequestFacts {
  const lines = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1] ?? ''] as const] : [],
  );
  const values = (name: string) => lines.flatMap((line) => (line[0] === name ? [line[1]] : []));
  return {
    ...{ method, scheme: 'http', authority: headers.host ?? '', target: url, removesProofs: true },
    headers: {
      values,
      lookup: (name) => {
        const [value, ...more] = values(name);
        if (more.length > 0) return { kind: 'ambiguous' };
        return value === undefined ? { kind: 'absent' } : { kind: 'single', value };
      },
      names: () => lines.map(([name]) => name),
      lines: () => lines,
    },
    body: body.length === 0 ? { kind: 'none' } : { kind: 'exact', bytes: body },
  };
}

const ENV = { ...PYTHON_ENV, NO_PROXY: '*', no_proxy: '*' };
const run = (program: string, ...args: readonly string[]) =>
  promisify(execFile)(program, args, { cwd: folder, env: ENV });

describe('the examples', () => {
  const programs: readonly (readonly [info: string, file: string, program: string])[] = [
    ['python', 'example.py', 'python3'],
    ['js', 'example.mjs', process.execPath],
    ['bash', 'example.sh', 'bash'],
  ];
  it.each(programs)('%s', async (info, file, program) => {
    if (info === 'python' && MISSING_PYTHON !== undefined) return;
    const [, text] = new RegExp(`^\`\`\`${info}\n(.*?)^\`\`\`$`, 'ms').exec(readText(PAGE)) ?? [];
    if (text === undefined) throw new Error(`no example in ${info}`);
    writeFileSync(join(folder, file), text.replaceAll(ORIGIN, origin));
    await run(program, file);
    await run(program, file);
    expect(outcomes).toEqual(['allowed', 'allowed']);
  });
});

const SIGNS = `
import datetime, json, secrets, sys
import requests
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from http_message_signatures import HTTPMessageSigner, MappingKeyResolver, algorithms

job = json.load(sys.stdin)
with open(job["key_file"], "rb") as file:
    keys = MappingKeyResolver(public_keys={}, private_keys={job["key_id"]: load_pem_private_key(file.read(), None)})
algorithm = algorithms.ED25519 if job["key_file"] == "key.pem" else algorithms.ECDSA_P256_SHA256
signer = HTTPMessageSigner(signature_algorithm=algorithm, key_resolver=keys)
request = requests.Request(job["method"], job["url"], headers=job["headers"], data=job["body"]).prepare()
now = datetime.datetime.now(datetime.timezone.utc)
options = {"nonce": secrets.token_urlsafe(16), "tag": job["tag"], "include_alg": job["include_alg"]}
body = None if job["body"] is None else job["body"].encode()
signer.sign(request, key_id=job["key_id"], created=now, expires=now + datetime.timedelta(seconds=60),
            covered_component_ids=job["components"], body=body, **options)
for _ in range(job["times"]):
    requests.Session().send(request)
`;

(MISSING_PYTHON === undefined ? describe : describe.skip)('the PyPI package', () => {
  const usual = { key_file: 'key.pem', key_id: KEY, tag: `proofgate/${AUTH_SITE}`, headers: {}, times: 1 };
  const TARGET = ['@method', '@target-uri'];
  const READ = { ...usual, method: 'GET', path: '/v1/orders/17?x=%2f..&y', body: null, components: TARGET };
  const WRITE = {
    ...READ,
    ...{
      method: 'POST',
      path: '/v1/orders',
      body: '{"amount":1}',
      headers: { 'Content-Type': 'application/json' },
    },
    components: [...TARGET, 'content-type'],
  };
  it.each<[string, typeof READ | typeof WRITE, object, readonly string[]]>([
    ['reads', READ, {}, ['allowed']],
    ['leaves the algorithm out', READ, { include_alg: false }, ['allowed']],
    ['signs with P-256', READ, { key_file: 'p256.pem', key_id: KEY_ID.reporting }, ['allowed']],
    [
      'covers the parts of the target',
      READ,
      { components: ['@query', '@path', '@authority', '@scheme', '@method'] },
      ['allowed'],
    ],
    ['writes', WRITE, {}, ['allowed']],
    [
      'signs headers of the route',
      READ,
      {
        path: '/v1/tenants',
        headers: { 'X-Tenant': 'acme', Accept: 'a/b' },
        components: [...TARGET, 'x-tenant', 'accept'],
      },
      ['allowed'],
    ],
    ['sends a request twice', READ, { times: 2 }, ['allowed', 'jti_replay 403']],
    [
      'signs for another site',
      WRITE,
      { tag: 'proofgate/shop-us-1' },
      ['invalid_request_proof/proof_missing 401'],
    ],
    [
      'leaves the type out',
      WRITE,
      { components: TARGET },
      ['request_binding_mismatch/component.content-type 403'],
    ],
    [
      'covers its default components alone',
      WRITE,
      { components: ['@method', '@authority', '@target-uri'] },
      ['request_binding_mismatch/component.content-type 403'],
    ],
  ])('%s', async (_what, plan, change, expected) => {
    const { path, ...job } = { include_alg: true, ...plan, ...change };
    writeFileSync(join(folder, 'signs.py'), SIGNS);
    writeFileSync(join(folder, 'job.json'), JSON.stringify({ ...job, url: `${origin}${path}` }));
    await run('bash', '-c', 'python3 signs.py <job.json');
    expect(outcomes).toEqual(expected);
  });
});
