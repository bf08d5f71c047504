/** The middleware in each framework, over real connections: what is allowed, what handlers get, what is denied. */
import { describe, expect, it } from '@jest/globals';
import { http1Client } from '../../../src/tools/conformance/wire/http1.ts';
import { KINDS } from '../../support/points/middleware-apps.ts';
import { useMiddleware } from '../../support/points/open-middleware.ts';
import { derivedKeyCaller } from '../../support/site/callers.ts';
import { ROUTES } from '../../support/site/routes.ts';
import { signedRequest, withHeader } from '../../support/site/signed-request.ts';

const middleware = useMiddleware(KINDS);

describe.each(KINDS)('%s', (kind) => {
  const start = () => {
    const { site } = middleware;
    const app = middleware.app(kind);
    return { app, caller: derivedKeyCaller(site), client: http1Client(app.address), site };
  };

  it('hands a verified request to the handler, with its proof', async () => {
    const { app, caller, client, site } = start();
    const response = await client.send(signedRequest(site, { caller, route: ROUTES.readOrder }));
    expect([response.status, response.body.toString()]).toEqual([200, expect.stringMatching(/^handled /)]);
    const [handled] = app.handled;
    expect(handled?.proof).toMatchObject({
      subject: 'client:billing',
      routeId: 'orders-read',
      clientId: 'billing',
      keyBinding: 'software',
    });
    const [event] = (await middleware.opened.decisions()).slice(-1);
    expect(event).toMatchObject({ outcome: 'allowed', decision_id: handled?.proof.decisionId });
  });

  it('hands on the bytes of a bound body', async () => {
    const { app, caller, client, site } = start();
    const body = '{"item":"4711"}';
    const route = ROUTES.createOrder;
    for (const framing of ['length', 'open'] as const) {
      const response = await client.send(signedRequest(site, { caller, route, body, framing }));
      expect(response.status).toBe(200);
    }
    expect(app.handled.map((each) => each.body.toString())).toEqual([body, body]);
  });

  it('denies a request without a proof', async () => {
    const { app, caller, client, site } = start();
    const request = signedRequest(site, { caller, route: ROUTES.readOrder });
    const response = await client.send(withHeader(request, 'x-proofgate-signature'));
    expect(response.status).toBe(401);
    expect(JSON.parse(response.body.toString())).toMatchObject({
      reason: 'invalid_request_proof',
      detail: 'proof_missing',
    });
    expect(app.handled).toEqual([]);
  });

  it('denies a proof the second time', async () => {
    const { app, caller, client, site } = start();
    const request = signedRequest(site, { caller, route: ROUTES.readOrder });
    expect((await client.send(request)).status).toBe(200);
    expect((await client.send(request)).status).toBe(403);
    expect(app.handled.length).toBe(1);
  });
});
