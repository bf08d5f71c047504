/** The signer's process in this one: its key file, the signing API, probes and drain. */
import { hash } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import pino from 'pino';
import { type RunningSigner, startSigner } from '../../../../src/caller/signer/program/signer-process.ts';
import {
  SIGNER_SETTINGS,
  type SignerSettings,
} from '../../../../src/caller/signer/program/signer-settings.ts';
import { settingValues } from '../../../../src/process/settings/settings.ts';
import { parseDpopProof } from '../../../../src/protocol/dpop-proof.ts';
import { isJsonObject, parseStrictJson } from '../../../../src/protocol/strict-json.ts';
import { parseTranscript } from '../../../../src/protocol/transcript.ts';
import { writeEnrolledKey } from '../../../support/caller/enrolled-key.ts';
import {
  newEd25519Key,
  profileDocument,
  profilesOf,
  routeDocument,
} from '../../../support/caller/signing.ts';
import { readText } from '../../../support/docs/markdown.ts';
import { httpGet, waitFor } from '../../../support/wait.ts';

const ORDERS = routeDocument({ route_id: 'orders', method: 'POST', path_template: '/v1/orders' });
const URL_OF_ORDERS = 'https://api.shop.example/v1/orders';

let folder = '';
let keyFile = '';
let log = '';
const running: RunningSigner[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signer-'));
  keyFile = join(folder, 'key.pem');
  log = '';
});
afterEach(async () => {
  for (const signer of running.splice(0)) await signer.stop();
  rmSync(folder, { recursive: true, force: true });
});

function settings(members: Partial<SignerSettings> = {}): SignerSettings {
  return {
    ...settingValues(SIGNER_SETTINGS, new Map()),
    key: keyFile,
    apiListen: `unix:${join(folder, 'signer.sock')}`,
    apiTokenFile: undefined,
    profileFile: undefined,
    extAuthzListen: undefined,
    unsigned: 'deny',
    adminListen: '127.0.0.1:0',
    drainTimeoutMs: 1_000,
    logLevel: 'info',
    ...members,
  };
}

async function start(members: Partial<SignerSettings> = {}): Promise<RunningSigner> {
  const write = (line: string) => {
    log += line;
  };
  const logger = pino({ level: 'info' }, { write });
  const signer = await startSigner(settings(members), {}, logger);
  running.push(signer);
  return signer;
}

const enroll = (options: { readonly expiresAtMs?: number } = {}) => {
  const key = newEd25519Key();
  return writeEnrolledKey(keyFile, { key, file: profilesOf(ORDERS), ...options }).then(() => key);
};

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** @param address of the API */
function ask(
  address: string,
  body: unknown,
  {
    headers = {},
    path = '/v1/proofs',
  }: { readonly headers?: Record<string, string>; readonly path?: string } = {},
): Promise<Answer> {
  const [host, port] = address.split(':');
  const place = address.startsWith('unix:') ? { socketPath: address.slice('unix:'.length) } : { host, port };
  return new Promise((resolve, reject) => {
    const message = request({ ...place, method: 'POST', path, headers, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += chunk));
      response.on('end', () => {
        const parsed = parseStrictJson(text);
        resolve({ status: response.statusCode ?? 0, body: isJsonObject(parsed) ? parsed : {} });
      });
    });
    message.on('error', reject);
    message.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

const PROOF_REQUEST = {
  method: 'POST',
  url: URL_OF_ORDERS,
  headers: [['Content-Type', 'application/json']],
  body_sha256: hash('sha256', '{}', 'base64url'),
};

describe('the signing API', () => {
  it('returns the headers of one request', async () => {
    await enroll();
    const { addresses } = await start();
    const { body, status } = await ask(addresses.api_listen ?? '', PROOF_REQUEST);
    expect(status).toBe(200);
    expect(body.headers).toEqual({
      Authorization: expect.stringMatching(/^Passport ey/),
      'X-Proofgate-Transcript': expect.any(String),
      'X-Proofgate-Signature': expect.any(String),
    });
    const headers = body.headers as Record<string, string>;
    const transcript = parseTranscript(
      Buffer.from(headers['X-Proofgate-Transcript'] ?? '', 'base64url'),
      'authorization',
    );
    expect(transcript).toMatchObject({
      method: 'POST',
      target: '/v1/orders',
      contentSha256: PROOF_REQUEST.body_sha256,
      headers: [{ name: 'content-type', value: 'application/json' }],
    });
    expect(log).toContain('"event":"request_signed"');
    for (const value of Object.values(headers)) expect(log).not.toContain(value);
  });

  it('returns an HTTP message signature', async () => {
    await enroll();
    const { addresses } = await start({ proof: 'http-message-signatures' });
    const { body, status } = await ask(addresses.api_listen ?? '', PROOF_REQUEST);
    expect([status, body.headers]).toEqual([
      200,
      {
        'Content-Digest': `sha-256=:${hash('sha256', '{}', 'base64')}:`,
        'Signature-Input': expect.stringContaining(
          '("@method" "@target-uri" "content-digest" "content-type")',
        ),
        Signature: expect.stringMatching(/^sig=:.*:$/),
      },
    ]);
  });

  it('returns a DPoP proof with the nonce that the client got', async () => {
    await enroll();
    const { addresses } = await start({ proof: 'dpop' });
    const asked = { ...PROOF_REQUEST, headers: [], dpop_nonce: 'n-1' };
    const { body, status } = await ask(addresses.api_listen ?? '', asked);
    expect(status).toBe(200);
    const { Authorization, DPoP } = body.headers as { readonly [name: string]: string };
    expect(Authorization).toMatch(/^DPoP ey/);
    expect(parseDpopProof(DPoP ?? '')).toMatchObject({ method: 'POST', nonce: 'n-1' });
    const answer = await ask(addresses.api_listen ?? '', { ...asked, dpop_nonce: 'n 1' });
    expect([answer.status, answer.body.type]).toEqual([400, 'urn:proofgate:fault:request_invalid']);
  });

  it('answers the request of docs/operate/signer.md', async () => {
    await enroll();
    const { addresses } = await start();
    const [request = '', answer = ''] = [
      ...readText('docs/operate/signer.md').matchAll(/```json\n(.*?)```/gs),
    ].map(([, text = '']) => text);
    const { body, status } = await ask(addresses.api_listen ?? '', request);
    expect(status).toBe(200);
    const shown = JSON.parse(answer);
    expect([Object.keys(body), Object.keys(body.headers as object)]).toEqual([
      Object.keys(shown),
      Object.keys(shown.headers),
    ]);
  });

  it('is for the owner of its socket alone', async () => {
    await enroll();
    await start();
    expect(statSync(join(folder, 'signer.sock')).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['another path', PROOF_REQUEST, { path: '/v1/proofs/' }, 404, 'route_unknown'],
    ['a web page', PROOF_REQUEST, { headers: { origin: 'https://evil.example' } }, 403, 'browser_request'],
    ['no JSON', '{', {}, 400, 'request_invalid'],
    ['nothing', '', {}, 400, 'request_invalid'],
    ['an unknown member', { ...PROOF_REQUEST, ttl: 60 }, {}, 400, 'request_invalid'],
    ['a hash of another length', { ...PROOF_REQUEST, body_sha256: 'abc' }, {}, 400, 'request_invalid'],
    ['a header that is no pair', { ...PROOF_REQUEST, headers: [['a']] }, {}, 400, 'request_invalid'],
    ['too much', 'x'.repeat(65_537), {}, 413, 'body_too_large'],
    [
      'another origin',
      { ...PROOF_REQUEST, url: 'https://evil.example/v1/orders' },
      {},
      502,
      'origin_not_allowed',
    ],
    [
      'a path without a profile',
      { ...PROOF_REQUEST, url: `${URL_OF_ORDERS}/7/x` },
      {},
      502,
      'profile_not_found',
    ],
    [
      'a path in another form',
      { ...PROOF_REQUEST, url: `${URL_OF_ORDERS}/../x` },
      {},
      400,
      'url_not_canonical',
    ],
  ])('refuses %s', async (_case, body, options, status, code) => {
    await enroll();
    const { addresses } = await start();
    const answer = await ask(addresses.api_listen ?? '', body, options);
    expect([answer.status, answer.body.type]).toEqual([status, `urn:proofgate:fault:${code}`]);
  });

  it('needs its token on a port', async () => {
    await enroll();
    const apiTokenFile = join(folder, 'token');
    for (const [content, mode, code] of [
      ['short\n', 0o600, 'token_file_invalid'],
      ['a-secret-of-24-characters\n', 0o644, 'file_permissions'],
    ] as const) {
      writeFileSync(apiTokenFile, content);
      chmodSync(apiTokenFile, mode);
      await expect(start({ apiListen: '127.0.0.1:0', apiTokenFile })).rejects.toMatchObject({ code });
    }
    chmodSync(apiTokenFile, 0o600);
    await expect(start({ apiListen: '127.0.0.1:0' })).rejects.toMatchObject({
      code: 'api_token_file_required',
    });
    await expect(start({ apiListen: '0.0.0.0:0', apiTokenFile })).rejects.toMatchObject({
      code: 'listen_not_loopback',
    });
    const { addresses } = await start({ apiListen: '127.0.0.1:0', apiTokenFile });
    const statusWith = async (headers: Record<string, string>) =>
      (await ask(addresses.api_listen ?? '', PROOF_REQUEST, { headers })).status;
    expect(await statusWith({})).toBe(401);
    expect(await statusWith({ authorization: 'Bearer other' })).toBe(401);
    expect(await statusWith({ authorization: 'Bearer a-secret-of-24-characters' })).toBe(200);
  });
});

describe('a key with a profile file', () => {
  const routesFor = (...routes: readonly Readonly<Record<string, unknown>>[]) =>
    JSON.stringify(profileDocument({ profiles: routes }));
  const answerOf = async ({ addresses }: RunningSigner) => {
    const { body, status } = await ask(addresses.api_listen ?? '', PROOF_REQUEST);
    return body.type ?? status;
  };

  it('signs without an enrollment, and follows the file', async () => {
    const pem = newEd25519Key().privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(keyFile, pem, { mode: 0o600 });
    const profileFile = join(folder, 'profile.yaml');
    writeFileSync(profileFile, routesFor(routeDocument()));
    const signer = await start({ profileFile });
    expect(await answerOf(signer)).toBe('urn:proofgate:fault:profile_not_found');
    writeFileSync(profileFile, routesFor(ORDERS));
    await waitFor('the new profile', async () => (await answerOf(signer)) === 200);
    writeFileSync(profileFile, 'profiles: 7');
    await waitFor('a rejected file', () => log.includes('"event":"file_rejected"'));
    expect(await answerOf(signer)).toBe(200);
  });
});

describe('readiness', () => {
  const keyCheck = async (upstream: string) => {
    await enroll({ expiresAtMs: Date.now() + 3_600_000 });
    const signer = await start({ listen: `unix:${join(folder, 'egress.sock')}`, upstream });
    const { text } = await httpGet(`http://${signer.addresses.admin_listen}/readyz`);
    return (JSON.parse(text).checks as { name: string }[]).find(({ name }) => name === 'key');
  };

  it('has the seconds that the key has left', async () => {
    const check = await keyCheck('https://api.shop.example');
    expect(check).toEqual({ name: 'key', ok: true, seconds_left: expect.any(Number) });
    const { seconds_left: seconds } = check as unknown as { readonly seconds_left: number };
    expect(seconds > 3_000 && seconds <= 3_600).toBe(true);
  });

  it('warns of an upstream that no profile has', async () => {
    const check = await keyCheck('https://other.shop.example');
    expect(check).toMatchObject({ ok: true, warning: expect.stringContaining('https://other.shop.example') });
  });
});

describe('a key without profiles', () => {
  const checkOfKey = async (signer: RunningSigner) => {
    const { status, text } = await httpGet(`http://${signer.addresses.admin_listen}/readyz`);
    const { checks } = JSON.parse(text) as { readonly checks: readonly { readonly name: string }[] };
    return { status, check: checks.find(({ name }) => name === 'key') };
  };

  it('not ready while every request is refused, ready once a profile is there', async () => {
    const key = newEd25519Key();
    const { coordinates } = profilesOf(ORDERS);
    await writeEnrolledKey(keyFile, { key, file: { coordinates, profiles: [] } });
    const signer = await start();
    const address = signer.addresses.api_listen ?? '';
    expect(await ask(address, PROOF_REQUEST)).toMatchObject({
      body: { type: 'urn:proofgate:fault:profile_not_found' },
    });
    expect(await checkOfKey(signer)).toMatchObject({
      status: 503,
      check: { problem: expect.stringContaining('profile_not_found') },
    });
    await writeEnrolledKey(keyFile, { key, file: profilesOf(ORDERS) });
    await waitFor('readiness', async () => (await checkOfKey(signer)).status === 200);
    expect((await ask(address, PROOF_REQUEST)).status).toBe(200);
  });

  it('ready with a warning where such requests are sent unsigned', async () => {
    const { coordinates } = profilesOf(ORDERS);
    await writeEnrolledKey(keyFile, { key: newEd25519Key(), file: { coordinates, profiles: [] } });
    const signer = await start({ unsigned: 'pass' });
    expect(await checkOfKey(signer)).toMatchObject({ status: 200, check: { warning: expect.any(String) } });
  });
});

describe('the key file', () => {
  const readiness = async (signer: RunningSigner) =>
    (await httpGet(`http://${signer.addresses.admin_listen}/readyz`)).status;

  it('may come later, and be replaced', async () => {
    const signer = await start();
    const address = signer.addresses.api_listen ?? '';
    expect(await readiness(signer)).toBe(503);
    expect(await ask(address, PROOF_REQUEST)).toMatchObject({
      status: 503,
      body: { type: 'urn:proofgate:fault:identity_not_ready' },
    });
    await enroll();
    await waitFor('the key', async () => (await readiness(signer)) === 200);
    const passport = async () => {
      const { headers } = (await ask(address, PROOF_REQUEST)).body;
      return (headers as Record<string, string>).Authorization;
    };
    const first = await passport();
    expect(await passport()).toBe(first);
    await enroll();
    await waitFor('the next key', async () => (await passport()) !== first);
  });

  it('that has expired signs nothing', async () => {
    await enroll({ expiresAtMs: Date.now() - 1 });
    const signer = await start();
    expect(await readiness(signer)).toBe(503);
    expect(log).toContain('key_expired');
    const { body } = await ask(signer.addresses.api_listen ?? '', PROOF_REQUEST);
    expect(body.type).toBe('urn:proofgate:fault:identity_not_ready');
  });
});

it('needs something to serve', async () => {
  await expect(start({ apiListen: undefined })).rejects.toMatchObject({ code: 'listener_required' });
});

it('serves the egress proxy with the key file', async () => {
  await enroll();
  const { addresses } = await start({
    ...{ apiListen: undefined, listen: '127.0.0.1:0' },
    ...{ upstream: 'https://api.shop.example', connectTo: '127.0.0.1:1' },
  });
  const response = await fetch(`http://${addresses.listen}/v1/orders`, { method: 'POST', body: 'a' });
  // Signed, and no server listens there.
  expect(await response.json()).toMatchObject({ type: 'urn:proofgate:fault:upstream_unreachable' });
  expect(log).toContain('"event":"request_signed","part":"egress"');
});
