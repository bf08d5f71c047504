/**
 * Clients with other people's libraries for RFC 9421 sign and send requests to each kind of enforcement point: npm
 * http-message-signatures, PyPI http-message-signatures and requests-http-signature, and the crate httpsig-hyper.
 *
 * What they lack: the nonce of httpsig-hyper is base64 with padding, so its caller gives one; requests-http-signature adds and
 * covers `Date`, whose comma Envoy may have put there, so its caller overrides `add_date`.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { writeKey } from '../../support/caller/key-files.ts';
import { MISSING_PYTHON, PYTHON_ENV } from '../../support/caller/sdk-drivers.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { newNonce } from '../../support/protocol/http-signer.ts';
import { AUTHORITY } from '../../support/site/routes.ts';
import { AUTH_SITE, type DerivedKeyId } from '../../support/site/site.ts';
import { useSite } from '../../support/site/site-fixture.ts';
import { waitFor } from '../../support/wait.ts';
import { BODY, READ, sign, WRITE } from '../http-signature-requests.ts';
import { type GuardedPoint, POINTS, startPoint } from './guarded-points.ts';

const fixture = useSite('suite');
const RUST_SIGNER = checkoutPath('.cache', 'sdk-rust', 'rust-signer');

interface Job {
  readonly keyId: DerivedKeyId;
  readonly method: string;
  readonly target: string;
  /** What the client covers; a digest of a body always. */
  readonly components: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** How often the signed request is sent. */
  readonly times: number;
  /** Default: one of the profile. */
  readonly nonce?: string;
}
/** @returns the status of each answer */
type Send = (job: Job) => Promise<readonly string[]>;

const TARGET = ['@method', '@target-uri'];
const READS: Job = {
  keyId: 'dk_billing',
  method: 'GET',
  target: '/v1/signed/4711?fields=id,%2f',
  components: TARGET,
  headers: {},
  body: '',
  times: 1,
};
const WRITES: Job = {
  ...READS,
  method: 'POST',
  target: '/v1/signed?dry=1',
  components: [...TARGET, 'content-type', 'x-tenant'],
  headers: { 'Content-Type': 'application/json', 'X-Tenant': 'acme' },
  body: BODY.toString(),
};

const PYTHON = `
import datetime, json, secrets, socket, sys
import requests
from http_message_signatures import HTTPMessageSigner, MappingKeyResolver, algorithms
from cryptography.hazmat.primitives.serialization import load_pem_private_key
job = json.load(sys.stdin)
# The host of the URL is the one of the site; connections go to the point.
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, port, *rest, **more: resolve(job["host"], job["port"], *rest, **more)
with open(job["key_file"], "rb") as file:
    pem = file.read()
algorithm = algorithms.ED25519 if job["ed25519"] else algorithms.ECDSA_P256_SHA256
session = requests.Session()
request = requests.Request(job["method"], job["url"], headers=job["headers"], data=job["body"] or None)
common = {"key_id": job["key_id"], "tag": job["tag"]}
if sys.argv[1] != "signer":
    from requests_http_signature import HTTPSignatureAuth
    class WithoutDate(HTTPSignatureAuth):
        def add_date(self, request, timestamp):
            pass
    request.auth = (HTTPSignatureAuth if sys.argv[1] == "with date" else WithoutDate)(signature_algorithm=algorithm, key=pem, use_nonce=True,
        covered_component_ids=tuple(job["components"]), expires_in=datetime.timedelta(seconds=60), **common)
    request = request.prepare()
else:
    request = request.prepare()
    keys = MappingKeyResolver(public_keys={}, private_keys={job["key_id"]: load_pem_private_key(pem, None)})
    now = datetime.datetime.now(datetime.timezone.utc)
    body = {"body": job["body"].encode()} if job["body"] else {}
    HTTPMessageSigner(signature_algorithm=algorithm, key_resolver=keys).sign(request, created=now,
        expires=now + datetime.timedelta(seconds=60), nonce=secrets.token_urlsafe(16),
        covered_component_ids=tuple(job["components"]), **common, **body)
for _ in range(job["times"]):
    print(session.send(request).status_code)
`;

let folder = '';
let point: GuardedPoint;

const keyFile = (keyId: DerivedKeyId) => writeKey(folder, keyId, fixture.site.derivedKeys[keyId].privateKey);
const isEd25519 = (keyId: DerivedKeyId) => fixture.site.derivedKeys[keyId].publicKey.algorithm === 'Ed25519';
const tag = `proofgate/${AUTH_SITE}`;

async function statusesOf(program: string, args: readonly string[], input = ''): Promise<readonly string[]> {
  const env = { ...PYTHON_ENV, NO_PROXY: '*', no_proxy: '*' };
  const running = promisify(execFile)(program, args, { env });
  running.child.stdin?.end(input);
  return (await running).stdout.trim().split('\n');
}

const python =
  (kind: 'signer' | 'without date' | 'with date'): Send =>
  ({ keyId, target, ...job }) => {
    const program = join(folder, 'client.py');
    writeFileSync(program, PYTHON);
    const more = { key_id: keyId, key_file: keyFile(keyId), ed25519: isEd25519(keyId), tag };
    const { host, port } = point.address;
    const input = { ...job, ...more, host, port, url: `http://${AUTHORITY}${target}` };
    return statusesOf('python3', [program, kind], JSON.stringify(input));
  };

const rust: Send = ({ body, components, headers, keyId, method, nonce = newNonce(), target, times }) => {
  const covered = body === '' ? components : [...components, 'content-digest'];
  const { host, port } = point.address;
  return statusesOf(RUST_SIGNER, [
    ...[`${host}:${port}`, `${times}`, keyFile(keyId), isEd25519(keyId) ? 'ed25519' : 'p256', keyId],
    ...[tag, nonce, covered.map((name) => `"${name}"`).join(' '), method],
    ...[`http://${AUTHORITY}${target}`, body],
    ...Object.entries(headers).map(([name, value]) => `${name}:${value}`),
  ]);
};

const node: Send = async ({ body, components, headers, keyId, method, target, times }) => {
  const fields = body === '' ? components : [...components, 'content-digest'];
  const key = fixture.site.derivedKeys[keyId];
  const plan = { method, target, headers, sign: { key, keyId, fields } };
  const request = await sign(fixture.site, body === '' ? plan : { ...plan, body: Buffer.from(body) });
  const statuses: string[] = [];
  for (let sent = 0; sent < times; sent += 1)
    statuses.push(`${(await http1Client(point.address).send(request)).status}`);
  return statuses;
};

const CLIENTS: readonly (readonly [name: string, missing: string | undefined, send: Send])[] = [
  ['npm http-message-signatures', undefined, node],
  ['PyPI http-message-signatures', MISSING_PYTHON, python('signer')],
  ['PyPI requests-http-signature', MISSING_PYTHON, python('without date')],
  ['crate httpsig-hyper', existsSync(RUST_SIGNER) ? undefined : 'run make sdk-tools', rust],
];

beforeAll(() => {
  folder = mkdtempSync(join(fixture.site.directory, 'clients-'));
});

describe.each(POINTS)('%s', (name) => {
  beforeAll(async () => {
    const bundleDirectory = await fixture.site.makeBundle({ moreRoutes: [READ, WRITE] });
    point = await startPoint(name, fixture, bundleDirectory);
    // A replay store that has just started refuses proofs of its past.
    await waitFor('an allowed request', async () => (await node(READS))[0] === '200' || undefined);
  });
  beforeEach(() => void point.arrived());

  for (const [client, missing, send] of CLIENTS) {
    (missing === undefined ? describe : describe.skip)(client, () => {
      it('reads once, with each algorithm', async () => {
        for (const keyId of ['dk_billing', 'dk_billing_p256'] as const) {
          expect(await send({ ...READS, keyId, times: 2 })).toEqual(['200', '403']);
          const arrived = point.arrived();
          expect(arrived.map(({ headers }) => headerValues(headers, 'x-proofgate-subject'))).toEqual([
            ['client:billing'],
          ]);
          for (const removed of ['signature', 'signature-input'])
            expect(headerValues(arrived[0]?.headers ?? [], removed)).toEqual([]);
        }
      });

      it('covers the parts of the target', async () => {
        const components = ['@query', '@path', '@authority', '@scheme', '@method'];
        expect(await send({ ...READS, components })).toEqual(['200']);
      });

      it('writes, unless it leaves a signed header out', async () => {
        const incomplete = { ...WRITES, components: [...TARGET, 'content-type'] };
        // nginx's verifier gets no bodies.
        expect(await send(incomplete)).toEqual([point.hasBodies ? '403' : '413']);
        expect(point.arrived()).toEqual([]);
        if (!point.hasBodies) return;
        expect(await send(WRITES)).toEqual(['200']);
        expect(point.arrived().map(({ body }) => body)).toEqual([WRITES.body]);
      });

      it('cannot use the key of another', async () => {
        expect(await send({ ...READS, keyId: 'dk_revoked' })).toEqual(['401']);
        expect(point.arrived()).toEqual([]);
      });
    });
  }

  (MISSING_PYTHON === undefined ? it : it.skip)('denies a covered date at Envoy alone', async () => {
    expect(await python('with date')(READS)).toEqual([name === 'Envoy' ? '403' : '200']);
  });

  (existsSync(RUST_SIGNER) ? it : it.skip)('denies the nonce that httpsig-hyper makes', async () => {
    expect(await rust({ ...READS, nonce: 'library' })).toEqual(['401']);
  });
});
