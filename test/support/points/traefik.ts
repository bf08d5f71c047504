/** Traefik with ForwardAuth, from the shipped configuration. */

import { startPointVerifier } from '../../conformance/point-verifier.ts';
import { freePort } from '../harness/free-port.ts';
import { startTraefik, traefikUnavailable } from '../harness/traefik.ts';
import { startUpstream } from '../harness/upstream.ts';
import { AUTHORITY } from '../site/routes.ts';
import type { EnforcementPoint, EnforcementPointDriver, PointOptions } from './enforcement-point.ts';

export const TRAEFIK: EnforcementPointDriver = {
  name: 'traefik',
  protocols: ['HTTP/1.1', 'HTTP/2'],
  unavailable: traefikUnavailable,
  start,
};

async function start(options: PointOptions): Promise<EnforcementPoint> {
  const address = `127.0.0.1:${await freePort()}`;
  const verifier = await startPointVerifier(options, [
    ...['--http-listen', address, '--http-profile', 'traefik', '--http-body', 'forwarded'],
    ...['--http-trusted-proxy', '127.0.0.1/32', '--external-origin', `http://${AUTHORITY}`],
  ]);
  const upstream = await (options.openUpstream ?? startUpstream)();
  try {
    const traefik = await startTraefik({ verifierUrl: `http://${address}/check/all-proofs`, upstream });
    return {
      address: traefik,
      upstream,
      decisions: () => verifier.auditEvents(),
      stop: async () => {
        await traefik.stop();
        await upstream.stop();
        await verifier.stop();
      },
    };
  } catch (error) {
    await upstream.stop();
    await verifier.stop();
    throw error;
  }
}
