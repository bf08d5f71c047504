/**
 * Clients that leave, or send rubbish behind a request, while Redis is late: the proxy and the forward-authentication server live
 * and serve on.
 */
import { connect } from 'node:http2';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { encodeHttp1, http1Client, openSocket } from '../../src/tools/conformance/wire/http1.ts';
import { freePort } from '../support/harness/free-port.ts';
import { startUpstream } from '../support/harness/upstream.ts';
import { derivedKeyCaller } from '../support/site/callers.ts';
import { AUTHORITY, ROUTES } from '../support/site/routes.ts';
import { signedRequest, withHeader, withMoreHeaders } from '../support/site/signed-request.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { startVerifier, type VerifierProcess } from '../support/site/verifier.ts';
import { type GuardedRedis, startRedis } from '../support/site/verifier-states.ts';
import { waitFor } from '../support/wait.ts';

const BODY = 'a body that is bound';

let site: Site;
let bundleDirectory: string;
let redis: GuardedRedis;
const stops: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  site = await createSite();
  bundleDirectory = await site.makeBundle();
  redis = await startRedis({ site, stops });
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  await site.remove();
});

interface Program {
  readonly port: number;
  readonly process: VerifierProcess;
}

const common = () => ({ replay: redis.url, flags: ['--redis-timeout', '400ms'] });

const PROGRAMS: { readonly [name: string]: () => Promise<Program> } = {
  proxy: async () => {
    const upstream = await startUpstream();
    stops.push(() => upstream.stop());
    const { flags, replay } = common();
    const process = await startVerifier(site, {
      ...{ bundleDirectory, replay, program: 'proxy', listen: 'tcp' },
      flags: [...flags, '--upstream', `http://${upstream.host}:${upstream.port}`],
    });
    if (process.address.kind !== 'tcp') throw new Error('the proxy does not listen on TCP');
    return { port: process.address.port, process };
  },
  'forward-auth': async () => {
    const port = await freePort();
    const { flags, replay } = common();
    const process = await startVerifier(site, {
      ...{ bundleDirectory, replay },
      flags: [
        ...[...flags, '--http-listen', `127.0.0.1:${port}`, '--http-profile', 'traefik'],
        ...['--http-body', 'forwarded', '--http-trusted-proxy', '127.0.0.1/32'],
        ...['--external-origin', `http://${AUTHORITY}`],
      ],
    });
    return { port, process };
  },
};

describe.each(['proxy', 'forward-auth'])('%s', (name) => {
  const signed = () => {
    const plan = { caller: derivedKeyCaller(site), route: ROUTES.createOrder, body: BODY };
    const request = signedRequest(site, plan);
    if (name === 'proxy') return request;
    const original = withMoreHeaders(request, [
      ['X-Forwarded-Method', request.method],
      ['X-Forwarded-Uri', request.target],
    ]);
    return { ...original, target: '/check' };
  };

  it('serves on', async () => {
    const started = await PROGRAMS[name]?.();
    if (started === undefined) throw new Error('no such program');
    const { port, process } = started;
    let exited = false;
    void process.exited.then(() => {
      exited = true;
    });
    const address = { host: '127.0.0.1', port };
    const leave = (bytes: Uint8Array): Promise<void> => {
      const socket = openSocket(address);
      socket.on('error', () => undefined);
      socket.write(bytes, () => socket.resetAndDestroy());
      return new Promise((resolve) => socket.once('close', () => resolve()));
    };
    const disturb = async () => {
      for (const request of [signed(), withHeader(signed(), 'x-proofgate-signature')]) {
        for (const framing of ['length', 'open'] as const) {
          const bytes = encodeHttp1({ ...request, framing });
          for (const cut of [0, 1, BODY.length - 1]) await leave(bytes.subarray(0, bytes.length - cut));
          await leave(Buffer.concat([bytes, Buffer.from('rubbish\r\n\r\n'), bytes]));
        }
      }
      if (name === 'proxy') await leaveStreams(port);
    };
    await disturb();
    redis.server.freeze();
    try {
      await disturb();
    } finally {
      redis.server.thaw();
    }
    await waitFor('an allowed request', async () => {
      return (await http1Client(address).send(signed())).status === 200;
    });
    expect(exited).toBe(false);
    await process.stop();
  });
});

/** Streams that are reset before, within and behind their body, and a connection that ends under them. */
async function leaveStreams(port: number): Promise<void> {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on('error', () => undefined);
  const {
    headers = [],
    method,
    target,
  } = signedRequest(site, {
    ...{ caller: derivedKeyCaller(site), route: ROUTES.createOrder, body: BODY },
  });
  for (const part of ['', BODY.slice(0, 5), BODY]) {
    const stream = session.request({
      ...{ ':method': method, ':path': target, ':authority': AUTHORITY },
      ...Object.fromEntries(headers),
    });
    stream.on('error', () => undefined);
    stream.write(part);
    await new Promise((resolve) => setImmediate(resolve));
    if (part === BODY) stream.end();
    else stream.close();
  }
  await new Promise((resolve) => setImmediate(resolve));
  session.destroy();
}
