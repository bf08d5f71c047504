import { hash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { readSigningKeyFile } from '../../src/process/files/key-files.ts';
import { parsePassport } from '../../src/protocol/passport.ts';
import { parseTranscript } from '../../src/protocol/transcript.ts';
import { verifySignature } from '../../src/protocol/verify-signature.ts';
import {
  type Answer,
  type LocalServer,
  selfSignedIdentity,
  startServer,
  type TlsIdentity,
} from '../support/caller/local-server.ts';
import { profileDocument, routeDocument } from '../support/caller/signing.ts';
import { runInProcess } from '../support/cli/in-process.ts';
import { type CliRun, expectCliError } from '../support/cli/run-cli.ts';

const ORIGIN = 'http://api.shop.example';
const URL = `${ORIGIN}/v1/orders/7?full=1`;

let folder = '';
let server: LocalServer | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'proofgate-request-'));
  await runInProcess(['keygen', '--out', join(folder, 'key.pem')]);
  const origins = [ORIGIN, 'https://api.shop.example'];
  const profiles = [
    routeDocument({ origins }),
    routeDocument({
      route_id: 'create',
      method: 'POST',
      path_template: '/v1/orders',
      signed_headers: ['content-type'],
      origins,
    }),
    routeDocument({ route_id: 'lower', method: 'get', path_template: '/v1/lower', origins }),
  ];
  await writeFile(join(folder, 'profile.json'), JSON.stringify(profileDocument({ profiles })));
  await writeFile(join(folder, 'body.json'), '{"item":1}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function serve(answer: Answer, identity?: TlsIdentity): Promise<LocalServer> {
  server = await startServer(answer, identity);
  return server;
}

function request(port: number, method: string, url: string, ...flags: readonly string[]): Promise<CliRun> {
  return runInProcess(['request', method, url, '--connect-to', `127.0.0.1:${port}`, ...flags], {
    PROOFGATE_KEY: join(folder, 'key.pem'),
    PROOFGATE_PROFILE_FILE: join(folder, 'profile.json'),
  });
}

const OK: Answer = (_seen, response) => {
  response.setHeader('X-Answer', 'yes');
  response.end('the answer\n');
};

describe('proofgate request', () => {
  it('sends what it has signed, and shows the answer alone', async () => {
    const { port, seen } = await serve(OK);
    const run = await request(
      port,
      'POST',
      `${ORIGIN}/v1/orders`,
      '--body-file',
      join(folder, 'body.json'),
      '--header',
      'Content-Type: application/json',
      '--header',
      'X-Note: unsigned',
    );
    expect(run).toEqual({ exitCode: 0, stdout: 'the answer\n', stderr: '' });
    const sent = seen[0];
    expect(sent).toMatchObject({ method: 'POST', target: '/v1/orders' });
    expect(sent?.headers).toMatchObject({
      host: 'api.shop.example',
      'x-note': 'unsigned',
      'content-length': '10',
    });
    const transcript = Buffer.from(String(sent?.headers['x-proofgate-transcript']), 'base64url');
    const signature = Buffer.from(String(sent?.headers['x-proofgate-signature']), 'base64url');
    const { publicKey } = await readSigningKeyFile(join(folder, 'key.pem'));
    expect(verifySignature(publicKey, transcript, signature)).toBe(true);
    expect(parsePassport(String(sent?.headers.authorization).replace('Passport ', ''))?.keyId).toBe(
      'dk_test',
    );
    expect(parseTranscript(transcript, 'authorization')).toMatchObject({
      routeId: 'create',
      scheme: 'http',
      authority: 'api.shop.example',
      target: sent?.target,
      contentSha256: hash('sha256', sent?.body ?? '', 'base64url'),
      headers: [{ name: 'content-type', value: 'application/json' }],
    });
  });

  it('shows status and headers when asked to', async () => {
    const { port } = await serve(OK);
    const { stdout } = await request(port, 'GET', URL, '--include');
    expect(stdout).toMatch(/^HTTP\/1\.1 200 OK\n(?:[^\n]+\n)*X-Answer: yes\n(?:[^\n]+\n)*\nthe answer\n$/);
  });

  it('shows everything as one object in JSON', async () => {
    const { port } = await serve(OK);
    const { stdout } = await request(port, 'GET', URL, '--output', 'json');
    expect(JSON.parse(stdout)).toEqual({
      status: 200,
      headers: expect.arrayContaining([{ name: 'X-Answer', value: 'yes' }]),
      body: 'the answer\n',
      body_encoding: 'utf-8',
    });
  });

  it.each([
    ['application/problem+json; charset=utf-8', '{}', '{}\n'],
    ['text/plain', 'line\n', 'line\n'],
    ['application/octet-stream', '{}', '{}'],
  ])('writes a body of type %s', async (type, body, stdout) => {
    const { port } = await serve((_seen, response) => response.setHeader('Content-Type', type).end(body));
    expect(await request(port, 'GET', URL)).toMatchObject({ stdout });
  });

  it('keeps bytes that are no text', async () => {
    const { port } = await serve((_seen, response) => response.end(Buffer.from([0xff, 0x00])));
    const { stdout } = await request(port, 'GET', URL, '--output', 'json');
    expect(JSON.parse(stdout)).toMatchObject({ body: '/wA=', body_encoding: 'base64' });
  });

  it('ends with 3 when it is denied, the answer shown all the same', async () => {
    const { port } = await serve((_seen, response) => {
      response.writeHead(403, { 'X-Proofgate-Reason': 'jti_replay' }).end('{"reason":"jti_replay"}');
    });
    expect(await request(port, 'GET', URL)).toEqual({
      exitCode: 3,
      stdout: '{"reason":"jti_replay"}',
      stderr: 'error: denied: status 403, reason jti_replay\n',
    });
  });

  it('says how far this clock is off when that may be why it is denied', async () => {
    const { port } = await serve((_seen, response) => {
      response.sendDate = false;
      response
        .writeHead(401, {
          'X-Proofgate-Reason': 'invalid_request_proof',
          Date: new Date(Date.now() + 45_000).toUTCString(),
        })
        .end();
    });
    const { stderr } = await request(port, 'GET', URL);
    expect(stderr).toMatch(/^error: denied: .* 4[3456] s behind /);
  });

  it('ends with 3 for any other status from 400 on', async () => {
    const { port } = await serve((_seen, response) => response.writeHead(500).end());
    const run = await request(port, 'GET', URL);
    expectCliError(run, 'http_status', 3);
  });

  it('ends with 4 when time is up, and with 5 without an answer', async () => {
    const { port } = await serve(() => {});
    expectCliError(await request(port, 'GET', URL, '--timeout', '200ms'), 'timed_out', 4);
    await server?.close();
    expectCliError(await request(port, 'GET', URL), 'unreachable', 5);
  });

  it('speaks TLS for the name in the URL', async () => {
    const identity = selfSignedIdentity('api.shop.example');
    await writeFile(join(folder, 'ca.crt'), identity.certificatePem);
    const { port } = await serve(OK, identity);
    const url = URL.replace('http:', 'https:');
    expect(await request(port, 'GET', url, '--ca-file', join(folder, 'ca.crt'))).toMatchObject({
      exitCode: 0,
    });
    expectCliError(await request(port, 'GET', url), 'unreachable', 5);
    expectCliError(await request(port, 'GET', url, '--ca-file', join(folder, 'body.json')), 'ca_invalid', 2);
    expectCliError(await request(port, 'GET', url, '--ca-file', join(folder, 'absent')), 'file_not_found', 2);
  });

  it.each([
    '127.0.0.1',
    ':80',
    'localhost:',
    'localhost:0',
    'localhost:70000',
    '::1:80',
    'a b:80',
    'http://a:80',
  ])('refuses to connect to %p', async (address) => {
    const run = await runInProcess([
      'request',
      'GET',
      URL,
      '--key',
      'k',
      '--profile-file',
      'p',
      '--connect-to',
      address,
    ]);
    expectCliError(run, 'bad_address', 2);
  });

  it('sends nothing that it could not sign', async () => {
    const { port, seen } = await serve(OK);
    expectCliError(await request(port, 'GET', 'http://evil.example/v1/orders/7'), 'origin_not_allowed', 3);
    expectCliError(await request(port, 'GET', `${ORIGIN}/v1/orders/..`), 'url_not_canonical', 2);
    expectCliError(await request(port, 'GET', URL, '--header', 'Host: evil'), 'header_reserved', 2);
    expectCliError(await request(port, 'GET', URL, '--header', 'A: b\r\nC: d'), 'header_invalid', 2);
    expectCliError(await request(port, 'GET', URL, '--timeout', '2h'), 'out_of_range', 2);
    expectCliError(await request(port, 'get', `${ORIGIN}/v1/lower`), 'method_invalid', 2);
    expect(seen).toEqual([]);
  });
});
