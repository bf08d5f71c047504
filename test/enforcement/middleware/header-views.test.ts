/** What handlers see of the headers: in no view a proof, a header of ours, one that rewrites requests, or another host. */
import { describe, expect, it } from '@jest/globals';
import type { HeaderLine, WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { type Handled, KINDS } from '../../support/points/middleware-apps.ts';
import { useMiddleware } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { AUTHORITY, ROUTES, type SiteRoute } from '../../support/site/routes.ts';
import { signedRequest, withMoreHeaders } from '../../support/site/signed-request.ts';
import { isForbidden, SMUGGLED_NAMES } from '../../support/site/smuggled-headers.ts';

const middleware = useMiddleware(KINDS);

/** Names in every view, in lower case. */
function namesSeen({ distinct, headers, raw }: Handled): readonly string[] {
  const rawNames = raw.filter((_, index) => index % 2 === 0);
  return [...Object.keys(headers), ...Object.keys(distinct), ...rawNames].map((name) => name.toLowerCase());
}

/** The values of one header in each view. */
function valuesSeen({ distinct, headers, raw }: Handled, name: string): readonly unknown[] {
  const rawValues = raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name);
  return [headers[name], distinct[name], rawValues];
}

/** A request has at most 100 header lines. */
const NAMES_AT_ONCE = 80;

describe.each(KINDS)('%s', (kind) => {
  async function handledOf(route: SiteRoute, more: readonly HeaderLine[], change: Partial<WireRequest> = {}) {
    const { site } = middleware;
    const app = middleware.app(kind);
    const signed = signedRequest(site, { caller: derivedKeyCaller(site), route });
    const response = await http1Client(app.address).send({ ...withMoreHeaders(signed, more), ...change });
    const [handled] = app.handled;
    if (handled === undefined) throw new Error(`${response.status} ${response.body.toString()}`);
    return handled;
  }

  it('shows no smuggled header in any spelling', async () => {
    expect(SMUGGLED_NAMES.length).toBeGreaterThan(100);
    for (let at = 0; at < SMUGGLED_NAMES.length; at += NAMES_AT_ONCE) {
      const names = SMUGGLED_NAMES.slice(at, at + NAMES_AT_ONCE);
      const handled = await handledOf(
        ROUTES.readOrder,
        names.map((name): HeaderLine => [name, 'smuggled']),
      );
      expect(namesSeen(handled).filter(isForbidden)).toEqual([]);
      expect(JSON.stringify([handled.headers, handled.distinct, handled.raw])).not.toContain('smuggled');
    }
  });

  it('shows neither the proof nor the passport', async () => {
    const names = namesSeen(await handledOf(ROUTES.readOrder, [['X-Tenant', 'a']]));
    expect(names).toContain('x-tenant');
    expect(names).not.toContain('authorization');
  });

  it('shows the passport where the route forwards it', async () => {
    const handled = await handledOf(ROUTES.whoAmI, []);
    const [own, distinct, raw] = valuesSeen(handled, 'authorization');
    expect([distinct, raw]).toEqual([[own], [own]]);
    expect(own).toMatch(/^Passport ey/);
  });

  it('shows the application its own Authorization where the passport has another header', async () => {
    const handled = await handledOf(ROUTES.bearer, [['Authorization', 'Bearer 1']]);
    expect(valuesSeen(handled, 'authorization')).toEqual(['Bearer 1', ['Bearer 1'], ['Bearer 1']]);
    expect(namesSeen(handled).filter(isForbidden)).toEqual([]);
  });

  it('shows the verified host', async () => {
    const handled = await handledOf(ROUTES.readOrder, [['X-Forwarded-Host', 'evil.example']], {
      authority: `${AUTHORITY.toUpperCase()}:80`,
    });
    expect(valuesSeen(handled, 'host')).toEqual([AUTHORITY, [AUTHORITY], [AUTHORITY]]);
    expect(namesSeen(handled)).not.toContain('x-forwarded-host');
  });

  it('takes header names of prototypes for what they are', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype'];
    const handled = await handledOf(
      ROUTES.readOrder,
      names.map((name): HeaderLine => [name, 'polluted']),
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect([`${{}}`, handled.proof.subject]).toEqual(['[object Object]', 'client:billing']);
    expect(namesSeen(handled)).toContain('constructor');
  });

  it.each([
    ['bound', ROUTES.createOrder],
    ['unbound', ROUTES.upload],
  ])('shows no trailer of a %s body', async (_binding, route) => {
    const { site } = middleware;
    const app = middleware.app(kind);
    const signed = signedRequest(site, { caller: derivedKeyCaller(site), route, body: 'data' });
    const trailers: readonly HeaderLine[] = [
      ['X-Proofgate-Subject', 'smuggled'],
      ['X-Checksum', '1'],
    ];
    const response = await http1Client(app.address).send({ ...signed, trailers });
    expect([response.status, app.handled[0]?.body.toString(), app.handled[0]?.trailers]).toEqual([
      200,
      'data',
      [],
    ]);
  });
});
