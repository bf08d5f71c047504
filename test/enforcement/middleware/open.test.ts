/** `Verifier.open`: options, errors, state, replay stores, and what an open verifier tells about itself. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { signBundle } from '../../../src/bundle/authoring/authoring.ts';
import { proofgate } from '../../../src/enforcement/middleware/node-handler.ts';
import {
  Verifier,
  VerifierError,
  type VerifierOptions,
} from '../../../src/enforcement/programs/middleware/index.ts';
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client, openSocket } from '../../../src/tools/conformance/wire/http1.ts';
import {
  bundleContent,
  AUTH_SITE as FAKE_AUTH_SITE,
  NOW_SECONDS,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { TestRedisServer } from '../../support/harness/redis-server.ts';
import { type App, KINDS, listening, runningApp, startApp } from '../../support/points/middleware-apps.ts';
import { openVerifier, untilReady, usualOptions } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withMoreHeaders } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';

let site: Site;
let usual: VerifierOptions;
const closing: { close(): Promise<void> }[] = [];
beforeAll(async () => {
  site = await createSite();
});
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});
afterAll(() => site.remove());

/** New for each test: a state directory belongs to one verifier. */
async function options(more: Partial<VerifierOptions> = {}): Promise<VerifierOptions> {
  usual = { ...(await usualOptions(site, await site.makeBundle())), ...more };
  return usual;
}

async function open(more: Partial<VerifierOptions> = {}) {
  const opened = await openVerifier(await options(more));
  closing.push(opened.verifier);
  return opened;
}

async function start(verifier: Verifier, kind: (typeof KINDS)[number] = 'node'): Promise<App> {
  const app = await startApp(kind, verifier);
  closing.push(app);
  return app;
}

const request = () => signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.readOrder });

/** @returns code and text of the error */
async function fault(wrong: object): Promise<{ readonly code: string; readonly message: string }> {
  const opening = Verifier.open({ ...(await options()), ...wrong });
  const error: unknown = await opening.then(
    (verifier) => verifier.close(),
    (thrown: unknown) => thrown,
  );
  if (error instanceof VerifierError) return error;
  throw new Error(`opened, or another error: ${error}`);
}

describe('an option that is wrong', () => {
  it.each<[string, string, object]>([
    ['authSite', 'option_required', { authSite: undefined }],
    ['externalOrigin', 'option_required', { externalOrigin: undefined }],
    ['stateDir', 'option_required', { stateDir: undefined }],
    ['bundleKeys', 'option_required', { bundleKeys: undefined }],
    ['replay', 'option_required', { replay: undefined }],
    ['authsite', 'option_unknown', { authsite: 'shop' }],
    ['otlpEndpoint', 'option_unknown', { otlpEndpoint: 'http://127.0.0.1:4318' }],
    ['controlTokenFile', 'option_unknown', { controlTokenFile: 'token' }],
    ['__proto__', 'option_unknown', JSON.parse('{ "__proto__": "x" }')],
    ['maxBodyBytes', 'bad_option_type', { maxBodyBytes: '1000' }],
    ['redisTimeoutMs', 'bad_option_type', { redisTimeoutMs: '100ms' }],
    ['bundleKeys', 'bad_option_type', { bundleKeys: 'key.jwk.json' }],
    ['auditGzip', 'bad_option_type', { auditGzip: 'yes' }],
    ['bundle', 'bad_option_type', { bundle: null }],
    ['maxBodyBytes', 'bad_integer', { maxBodyBytes: 1.5 }],
    ['holderQuota', 'bad_integer', { holderQuota: Number.NaN }],
    ['maxBodyBytes', 'out_of_range', { maxBodyBytes: 0 }],
    ['bundleThreshold', 'out_of_range', { bundleThreshold: 17 }],
    ['realtimeStalenessMs', 'out_of_range', { realtimeStalenessMs: 10 }],
    ['redisTimeoutMs', 'bad_duration', { redisTimeoutMs: 10.5 }],
    ['audit', 'bad_choice', { audit: 'sometimes' }],
    ['externalOrigin', 'bad_origin', { externalOrigin: 'https://api.shop.example/' }],
    ['authSite', 'bad_auth_site', { authSite: 'a b' }],
    ['stateDir', 'state_dir_unusable', { stateDir: '/nonexistent' }],
    ['bundle', 'bundle_source_missing', { bundle: undefined }],
    ['controlUrl', 'control_url_not_https', { controlUrl: 'http://control.example' }],
    ['tokenFile', 'control_token_file_missing', { controlUrl: 'https://control.example' }],
    ['bundleThreshold', 'bundle_threshold_too_high', { bundleThreshold: 2 }],
    ['breakGlassFile', 'break_glass_incomplete', { breakGlassFile: '/nonexistent' }],
    ['nonexistent', 'file_not_found', { bundleKeys: ['/nonexistent'] }],
    ['replay', 'bad_replay_store', { replay: 'postgres://db' }],
    ['redisTimeoutMs', 'redis_setting_unused', { redisTimeoutMs: 100 }],
    [
      'auditFile',
      'audit_required_needs_file',
      { auditFile: undefined, auditUrl: 'https://collector.example/' },
    ],
    ['/nonexistent/audit', 'audit_file_unusable', { auditFile: '/nonexistent/audit' }],
  ])('%s: %s', async (name, code, wrong) => {
    const { code: found, message } = await fault(wrong);
    expect(found).toBe(code);
    expect(message).toMatch(new RegExp(`^${code}: .*${name}`));
    expect(message).not.toMatch(/--|\n/);
  });
});

describe('a state directory', () => {
  it('belongs to one verifier at a time', async () => {
    const { verifier } = await open();
    const first = usual;
    expect((await fault({ stateDir: first.stateDir })).code).toBe('state_dir_in_use');
    await verifier.close();
    const again = await Verifier.open(first);
    closing.push(again);
    expect(again.status().bundleRevision).toBe(1);
  });

  it('belongs to one of two that open at once', async () => {
    const both = await options();
    const results = await Promise.allSettled([Verifier.open(both), Verifier.open(both)]);
    for (const result of results) if (result.status === 'fulfilled') closing.push(result.value);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('replay', () => {
  it('one Redis serves verifiers of several frameworks: a proof passes at one of them', async () => {
    const redis = await TestRedisServer.start('--maxmemory-policy', 'noeviction');
    closing.push({ close: () => redis.stop() });
    const apps: App[] = [];
    const bundle = await site.makeBundle();
    for (const kind of KINDS) {
      const { verifier } = await open({ bundle, replay: redis.url, redisTimeoutMs: 400 });
      await untilReady(verifier);
      apps.push(await start(verifier, kind));
    }
    for (let round = 0; round < 10; round += 1) {
      const signed = request();
      const answers = await Promise.all(apps.map(({ address }) => http1Client(address).send(signed)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 403, 403, 403]);
    }
    await redis.stop();
    const [app] = apps;
    if (app === undefined) throw new Error('no application');
    expect((await http1Client(app.address).send(request())).status).toBe(503);
  });

  it('memory takes only a bundle that says `single_verifier`', async () => {
    const signer = newTestKeys();
    const { issued_at: _issued, revision: _revision, ...content } = bundleContent(signer);
    const directory = await mkdtemp(join(site.directory, 'several-'));
    const bundleKey = join(directory, 'key.jwk.json');
    await writeFile(bundleKey, JSON.stringify(signer.bundle.publicKey.jwk));
    await signBundle({
      yamlText: JSON.stringify(content),
      fileName: 'several.yaml',
      signingKeys: [signer.bundle],
      outDirectory: directory,
      nowSeconds: NOW_SECONDS,
    });
    const { verifier } = await open({
      authSite: FAKE_AUTH_SITE,
      bundle: directory,
      bundleKeys: [bundleKey],
    });
    const { checks, isReady } = verifier.status();
    expect(isReady).toBe(false);
    expect(checks.find(({ name }) => name === 'bundle')?.problem).toMatch(/single_verifier/);
  });

  it('memory is not for a worker of a cluster', async () => {
    const script = join(await mkdtemp(join(site.directory, 'cluster-')), 'worker.mjs');
    const entry = checkoutPath('dist', 'enforcement', 'programs', 'middleware', 'index.js');
    await writeFile(
      script,
      `import cluster from 'node:cluster';
if (cluster.isPrimary) cluster.fork().on('exit', (code) => process.exit(code));
else {
  const { Verifier } = await import(${JSON.stringify(entry)});
  const error = await Verifier.open(${JSON.stringify(await options())}).catch((thrown) => thrown);
  process.exit(error.code === 'memory_in_cluster_worker' ? 7 : 1);
}
`,
    );
    const child = fork(script);
    expect(await new Promise((resolve) => child.once('exit', resolve))).toBe(7);
  });
});

describe('an open verifier', () => {
  it('says whether it is ready, and why not', async () => {
    const { verifier } = await open({ bundle: await mkdtemp(join(site.directory, 'empty-')) });
    const { bundleRevision, checks, isReady } = verifier.status();
    expect([isReady, bundleRevision]).toEqual([false, undefined]);
    expect(checks.find(({ name }) => name === 'bundle')?.problem).toBeDefined();
    const app = await start(verifier);
    const { body, status } = await http1Client(app.address).send(request());
    expect([status, body.toString()]).toEqual([503, expect.stringContaining('bundle_policy_missing')]);
  });

  it('counts decisions in its metrics', async () => {
    const { verifier } = await open();
    const app = await start(verifier);
    await http1Client(app.address).send({ ...request(), headers: [] });
    const text = await verifier.metrics();
    expect(text).toMatch(/^proofgate_decisions_total\{.*detail="authorization_missing".*\} 1$/m);
    expect(text).toMatch(/^proofgate_bundle_revision 1$/m);
  });

  it('follows a rotated audit file', async () => {
    const { auditFile, decisions, verifier } = await open();
    const app = await start(verifier);
    await http1Client(app.address).send({ ...request(), headers: [] });
    await rename(auditFile, `${auditFile}.1`);
    verifier.reopenAudit();
    await http1Client(app.address).send({ ...request(), headers: [] });
    expect((await decisions()).length).toBe(1);
  });

  it('warns of a server that takes fewer bytes of headers than large tokens need', async () => {
    const warned: unknown[] = [];
    const ignore = () => undefined;
    const warn = (members: unknown) => warned.push(members);
    const { verifier } = await open({ logger: { debug: ignore, info: ignore, warn, error: ignore } });
    const before = warned.length;
    verifier.protect(createServer({ maxHeaderSize: 32_768 }));
    expect(warned.length).toBe(before);
    verifier.protect(createServer());
    expect(warned.slice(before)).toEqual([{ maxHeaderSize: 16_384 }]);
  });

  it('logs to the logger it was given, and once that a server is not protected', async () => {
    const lines: string[] = [];
    const log = (...parts: readonly unknown[]) => void lines.push(String(parts.at(-1)));
    const logger = { debug: log, info: log, warn: log, error: log };
    const { verifier } = await open({ logger });
    expect(lines).toContain('bundle loaded');
    lines.length = 0;
    const unprotected = createServer();
    unprotected.on('request', async (received, response) => {
      const admission = await verifier.admit(received, () => ({
        method: received.method,
        target: received.url,
      }));
      response.end(admission.kind);
    });
    await new Promise<void>((resolve) => unprotected.listen(0, '127.0.0.1', () => resolve()));
    const address = unprotected.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    for (let count = 0; count < 2; count += 1) {
      const { body } = await http1Client({ host: '127.0.0.1', port }).send(request());
      expect(body.toString()).toBe('refused');
    }
    unprotected.closeAllConnections();
    await new Promise((resolve) => unprotected.close(resolve));
    expect(lines).toEqual([expect.stringContaining('verifier.protect(server)')]);
  });

  it('without a logger warns once of a server that is not protected, and of a body that was read before', async () => {
    const warnings: string[] = [];
    // Jest's process is a copy, which gets no `warning` events.
    const { emitWarning } = process;
    process.emitWarning = (text: string | Error) => void warnings.push(String(text));
    const { verifier } = await open();
    await untilReady(verifier);
    const handler = proofgate(verifier, (_, response) => response.end());
    const forgotten = runningApp(await listening(createServer(handler)));
    const parsing = createServer((received, response) => {
      received.once('data', () => handler(received, response));
    });
    const parsed = runningApp(await listening(verifier.protect(parsing)));
    closing.push(forgotten, parsed);
    const order = () =>
      signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.createOrder, body: '{"a":1}' });
    const details = async (app: typeof parsed) => {
      const { body } = await http1Client(app.address).send(order());
      return JSON.parse(body.toString()).detail;
    };
    expect([await details(forgotten), await details(forgotten)]).toEqual(['unprotected', 'unprotected']);
    expect([await details(parsed), await details(parsed)]).toEqual(['body_unavailable', 'body_unavailable']);
    process.emitWarning = emitWarning;
    expect(warnings).toEqual([
      expect.stringContaining('verifier.protect(server)'),
      expect.stringContaining('body parser'),
    ]);
  });

  it('denies what comes after it was closed', async () => {
    const { verifier } = await open();
    const app = await start(verifier);
    await untilReady(verifier);
    expect((await http1Client(app.address).send(request())).status).toBe(200);
    await verifier.close();
    expect((await http1Client(app.address).send(request())).status).toBe(503);
  });

  it('ends WebSockets when it is closed', async () => {
    const bundle = await site.makeBundle({ webSocketRoutes: [ROUTES.whoAmI.route_id] });
    const { verifier } = await open({ bundle });
    await untilReady(verifier);
    const server = createServer().on('upgrade', (_request, socket) => socket.write('open'));
    const app = runningApp(await listening(verifier.protect(server)));
    closing.push(app);
    const signed = signedRequest(site, { caller: derivedKeyCaller(site), route: ROUTES.whoAmI });
    const handshake: readonly HeaderLine[] = [
      ['Connection', 'upgrade'],
      ['Upgrade', 'websocket'],
      ['Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
      ['Sec-WebSocket-Version', '13'],
    ];
    const socket = openSocket(app.address);
    socket.write(encodeHttp1(withMoreHeaders(signed, handshake)));
    const [first] = await once(socket, 'data');
    expect(String(first)).toBe('open');
    await verifier.close();
    socket.resume();
    await once(socket, 'close');
  });

  it('protects servers of node:http only, each for one verifier', async () => {
    const [{ verifier: first }, { verifier: second }] = [await open(), await open()];
    const server = createServer();
    expect(first.protect(first.protect(server))).toBe(server);
    expect(() => second.protect(server)).toThrow(
      expect.objectContaining({ code: 'server_already_protected' }),
    );
    const http2 = createHttp2Server() as never;
    expect(() => first.protect(http2)).toThrow(expect.objectContaining({ code: 'server_not_supported' }));
  });
});
