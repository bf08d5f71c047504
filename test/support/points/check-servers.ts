/** ext_authz servers for tests, each with a verifier of its own; they stop after the test. */
import { afterEach } from '@jest/globals';
import {
  type ExtAuthzServer,
  type ExtAuthzServerOptions,
  openExtAuthzServer,
} from '../../../src/enforcement/ext-authz-grpc/ext-authz-server.ts';
import { createVerifierMetrics } from '../../../src/verifier/verifier-metrics.ts';
import { compileSite, newSiteKeys, siteContent } from '../fixtures/snapshot.ts';
import {
  createTestVerifier,
  type TestVerifier,
  type TestVerifierOptions,
} from '../fixtures/test-verifier.ts';

const keys = newSiteKeys();
const snapshot = await compileSite(siteContent(keys));

/** @param maxMessageBytes of every server */
export function useExtAuthzServers(maxMessageBytes: number) {
  const metrics = createVerifierMetrics(() => undefined);
  const servers: ExtAuthzServer[] = [];
  afterEach(async () => {
    for (const extAuthz of servers.splice(0)) await extAuthz.drain(0);
  });
  async function open(
    options: Partial<ExtAuthzServerOptions> = {},
    verifierOptions: TestVerifierOptions = {},
  ): Promise<ExtAuthzServer & TestVerifier> {
    const made = createTestVerifier({ snapshot, ...verifierOptions });
    const listen = '127.0.0.1:0';
    const base = { metrics, listen, bodyMode: 'buffered', maxMessageBytes } as const;
    const extAuthz = await openExtAuthzServer({ ...base, verifier: made.verifier, ...options });
    servers.push(extAuthz);
    return { ...made, ...extAuthz };
  }
  return { keys, snapshot, metrics, open };
}
