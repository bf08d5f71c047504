/**
 * What disturbs a request on its way: something else answers it, Redis or the client is late or gone, the application throws.
 * The process lives, the connection ends, and a denial is audited once.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { encodeHttp1, http1Client, openSocket } from '../../../src/tools/conformance/wire/http1.ts';
import type { Child } from '../../support/harness/child.ts';
import type { TestRedisServer } from '../../support/harness/redis-server.ts';
import { runTypescript } from '../../support/harness/run-typescript.ts';
import type { DisturbedAppSettings } from '../../support/points/disturbed-app.ts';
import { KINDS } from '../../support/points/middleware-apps.ts';
import { usualOptions, WEB_SOCKET_ROUTES } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { signedRequest, withHeader, withMoreHeaders } from '../../support/site/signed-request.ts';
import { createSite, type Site } from '../../support/site/site.ts';
import { startRedis } from '../../support/site/verifier-states.ts';
import { waitFor } from '../../support/wait.ts';

let site: Site;
let bundle: string;
let redis: { readonly server: TestRedisServer; readonly url: string };
const stops: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  site = await createSite();
  bundle = await site.makeBundle({ webSocketRoutes: WEB_SOCKET_ROUTES });
  redis = await startRedis({ site, stops });
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  await site.remove();
});

describe.each(KINDS)('%s', (kind) => {
  let child: Child;
  let auditFile = '';
  let address = { host: '127.0.0.1', port: 0 };
  beforeAll(async () => {
    const options = { ...(await usualOptions(site, bundle)), replay: redis.url, redisTimeoutMs: 400 };
    auditFile = options.auditFile ?? '';
    const settings: DisturbedAppSettings = { kind, options };
    child = runTypescript('../points/disturbed-app.ts', settings);
    const [, port] = await child.waitForLine(/^port (\d+)$/);
    address = { ...address, port: Number(port) };
  });
  afterAll(async () => {
    await child.stop();
  });

  const signed = (route: SiteRoute, more: readonly HeaderLine[], body?: string): WireRequest =>
    withMoreHeaders(
      signedRequest(site, { caller: derivedKeyCaller(site), route, ...(body !== undefined && { body }) }),
      more,
    );
  const unsigned = (...parts: Parameters<typeof signed>) =>
    withHeader(signed(...parts), 'x-proofgate-signature');

  async function denials(): Promise<readonly string[]> {
    const lines = (await readFile(auditFile, 'utf8')).split('\n').filter(Boolean);
    const events = lines.map((line): DecisionEvent => JSON.parse(line));
    return events
      .filter(({ event, outcome }) => event === 'proofgate.decision' && outcome === 'denied')
      .map(({ detail, reason }) => `${reason}/${detail}`);
  }

  /** The connection of a client. */
  function open() {
    const socket = openSocket(address);
    let text = '';
    let isClosed = false;
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      isClosed = true;
    });
    return {
      socket,
      text: () => text,
      until: (pattern: RegExp) => waitFor(String(pattern), () => pattern.test(text)),
      closed: () => waitFor('the end of the connection', () => isClosed),
    };
  }

  async function expectAlive() {
    expect((await http1Client(address).send(signed(ROUTES.readOrder, []))).status).toBe(200);
    expect(child.exitStatus()).toBeUndefined();
  }

  /** Everything that happens in the action, and afterwards the process still serves. */
  async function denialsDuring(action: () => Promise<void>): Promise<readonly string[]> {
    const before = (await denials()).length;
    await action();
    await expectAlive();
    return (await denials()).slice(before);
  }

  it('half of an unsigned body, an answer by something else, then the rest', async () => {
    const found = await denialsDuring(async () => {
      const client = open();
      const bytes = encodeHttp1(unsigned(ROUTES.createOrder, [['X-Answer', 'soon']], 'half of a body'));
      client.socket.write(bytes.subarray(0, -7));
      await client.until(/^HTTP\/1\.1 503 .*late/s);
      client.socket.write(bytes.subarray(-7));
      await client.closed();
      expect(client.text().match(/HTTP\/1\.1/g)).toHaveLength(1);
    });
    expect(found).toEqual(['invalid_request_proof/proof_missing']);
  });

  it.each([
    ['unsigned', unsigned, 'invalid_request_proof/proof_missing'],
    ['signed', signed, 'verifier_unavailable/overloaded'],
  ])(
    'an answer by something else before the verification of a request that is %s',
    async (_how, make, denial) => {
      const found = await denialsDuring(async () => {
        const client = open();
        client.socket.write(encodeHttp1(make(ROUTES.readOrder, [['X-Answer', 'now']])));
        await client.closed();
        expect(client.text()).not.toContain('handled');
      });
      expect(found).toEqual([denial]);
    },
  );

  it('an answer by something else while Redis is late', async () => {
    const found = await denialsDuring(async () => {
      redis.server.freeze();
      try {
        const client = open();
        client.socket.write(encodeHttp1(signed(ROUTES.readOrder, [['X-Answer', 'soon']])));
        await client.until(/^HTTP\/1\.1 503 .*late/s);
        await client.closed();
      } finally {
        redis.server.thaw();
      }
      await waitFor('Redis', async () => {
        return (await http1Client(address).send(signed(ROUTES.readOrder, []))).status === 200;
      });
    });
    expect(found[0]).toMatch(/^replay_store_unavailable\//);
  });

  it('a client that leaves', async () => {
    const found = await denialsDuring(async () => {
      for (const cut of [0, 7]) {
        for (const make of [signed, unsigned]) {
          const client = open();
          const bytes = encodeHttp1(make(ROUTES.createOrder, [], 'half of a body'));
          client.socket.write(bytes.subarray(0, bytes.length - cut), () => client.socket.resetAndDestroy());
          await client.closed();
        }
      }
    });
    expect(found.length).toBeLessThanOrEqual(2);
  });

  it('a handler or hook that throws', async () => {
    const found = await denialsDuring(async () => {
      const client = open();
      client.socket.write(
        encodeHttp1(
          signed(ROUTES.readOrder, [
            ['X-Throw', 'yes'],
            ['Connection', 'close'],
          ]),
        ),
      );
      await client.closed();
      expect(client.text()).toMatch(/^(?:HTTP\/1\.1 500 |$)/);
    });
    expect(found).toEqual([]);
  });

  it('a listener of upgrades that throws', async () => {
    const found = await denialsDuring(async () => {
      const client = open();
      const upgrade: readonly HeaderLine[] = [
        ['X-Throw', 'yes'],
        ['Connection', 'upgrade'],
        ['Upgrade', 'websocket'],
        ['Sec-WebSocket-Key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
        ['Sec-WebSocket-Version', '13'],
      ];
      client.socket.write(encodeHttp1(signed(ROUTES.whoAmI, upgrade)));
      await client.closed();
    });
    expect(found).toEqual([]);
  });
});
