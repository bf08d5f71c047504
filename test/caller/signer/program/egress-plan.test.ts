/** The settings of the egress proxy, and what it signs and sends over TLS. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import pino from 'pino';
import { Registry } from 'prom-client';
import {
  EGRESS_SETTINGS,
  type EgressSettings,
  openEgress,
  planEgress,
} from '../../../../src/caller/signer/program/egress-plan.ts';
import { settingValues } from '../../../../src/process/settings/settings.ts';
import { billingSigner } from '../../../support/caller/egress-fixture.ts';
import { makeCertificates } from '../../../support/harness/certificates.ts';
import { AUTHORITY } from '../../../support/site/routes.ts';
import { createSite } from '../../../support/site/site.ts';

const DEFAULTS: EgressSettings = {
  ...{ listen: '127.0.0.1:0', upstream: `https://${AUTHORITY}`, routes: [] },
  ...{ upstreamCaFile: undefined, connectTo: undefined, maxBody: 1_000_000 },
};

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

it('is off without --listen', async () => {
  expect(settingValues(EGRESS_SETTINGS, new Map())).toMatchObject({
    listen: undefined,
    maxBody: 104_857_600,
  });
  expect(await planEgress({ ...DEFAULTS, listen: undefined, upstream: undefined })).toBeUndefined();
});

describe('settings that cannot be', () => {
  it.each<[string, Partial<EgressSettings>]>([
    ['listen_required', { listen: undefined }],
    ['listen_not_loopback', { listen: '0.0.0.0:8081' }],
    ['listen_not_loopback', { listen: '[::]:8081' }],
    ['bad_upstream', { upstream: undefined }],
    ['bad_upstream', { upstream: `https://${AUTHORITY}/` }],
    ['bad_upstream', { upstream: `https://user@${AUTHORITY}` }],
    ['bad_upstream', { upstream: `ftp://${AUTHORITY}` }],
    ['bad_upstream', { upstream: undefined, routes: [`shop=https://${AUTHORITY}`] }],
    ['bad_upstream', { upstream: undefined, routes: [`/=https://${AUTHORITY}`] }],
    ['bad_upstream', { upstream: undefined, routes: [`/a/../b=https://${AUTHORITY}`] }],
    ['bad_upstream', { upstream: undefined, routes: [`/a=https://${AUTHORITY}`, `/a=https://${AUTHORITY}`] }],
    ['bad_upstream', { routes: [`/a=https://${AUTHORITY}`], connectTo: '127.0.0.1:1' }],
    ['bad_upstream', { upstream: 'https://192.0.2.1', connectTo: '127.0.0.1:1' }],
    ['bad_address', { connectTo: 'https://a' }],
  ])('%s: %j', async (code, changes) => {
    await expect(planEgress({ ...DEFAULTS, ...changes })).rejects.toMatchObject({ code });
  });
});

describe('an upstream over TLS', () => {
  const open = async (nameInCertificate: string) => {
    const certificates = await makeCertificates(nameInCertificate, 'spiffe://shop.example/a');
    const site = await createSite();
    const arrived: string[] = [];
    const { cert, key } = certificates.server;
    const server = createServer({ cert, key }, (request, response) => {
      arrived.push(`${request.headers.host} ${request.headers.authorization?.slice(0, 9)}`);
      response.end('ok');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const plan = await planEgress({
      ...DEFAULTS,
      upstreamCaFile: certificates.ca.certPath,
      connectTo: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    });
    if (plan === undefined) throw new Error('no plan');
    const egress = await openEgress(plan, {
      ...{ signer: billingSigner(site), unsigned: 'deny', registry: new Registry() },
      ...{ logger: pino({ level: 'silent' }), onSigned: () => undefined, onInternalError: () => undefined },
      onRefused: () => undefined,
      onPassed: () => undefined,
    });
    ends.push(
      () => Promise.all([site.remove(), certificates.remove()]),
      () => {
        server.close();
        server.closeAllConnections();
      },
      () => egress.drain(0),
    );
    const response = await fetch(`http://${egress.address}/v1/orders/1`);
    return { status: response.status, text: await response.text(), arrived };
  };

  it('verifies its certificate for the host of the origin, wherever it connects to', async () => {
    expect(await open(AUTHORITY)).toEqual({
      status: 200,
      text: 'ok',
      arrived: [`${AUTHORITY} Passport `],
    });
  });

  it('sends nothing to a server with the certificate of another host', async () => {
    const { arrived, status, text } = await open('other.example');
    expect([status, JSON.parse(text).type]).toEqual([502, 'urn:proofgate:fault:upstream_unreachable']);
    expect(arrived).toEqual([]);
  });
});
