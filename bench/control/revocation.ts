/**
 * Measures how long a revoked key still passes: from the answer to the revoke call to the first denial by a real Envoy and a
 * verifier that follows Control. Everything is on loopback, one key a run.
 */
import { ControlStage } from '../../test/support/control/control-fixture.ts';
import { FollowedGateway } from '../../test/support/control/followed-gateway.ts';

export const REVOCATION_RUNS = 20;
/** Longest that the slowest run may take, milliseconds. */
export const MOST_REVOCATION_MS = 1000;

/** @returns milliseconds of each run */
export async function measureRevocation(): Promise<readonly number[]> {
  const stage = await ControlStage.start();
  try {
    const gateway = await FollowedGateway.start(stage);
    try {
      const api = await stage.api();
      const runsMs: number[] = [];
      for (let run = 0; run < REVOCATION_RUNS; run++) {
        const { keyFile, keyId } = await stage.enroll('billing');
        await gateway.awaitOutcome(keyFile, { status: 200 });
        await api.act(`/v1/derived-keys/${keyId}/revoke`, { body: {} });
        runsMs.push(await untilDenied(gateway, keyFile));
      }
      await api.close();
      return runsMs;
    } finally {
      await gateway.stop();
    }
  } finally {
    await stage.stop();
  }
}

async function untilDenied(gateway: FollowedGateway, keyFile: string): Promise<number> {
  const startedMs = performance.now();
  for (;;) {
    const { status, detail } = await gateway.send(keyFile);
    const passedMs = performance.now() - startedMs;
    if (status === 401 && detail === 'key_revoked') return passedMs;
    if (status !== 200) throw new Error(`neither allowed nor revoked: ${status} ${detail}`);
    if (passedMs > 30_000) throw new Error('still allowed after 30 s');
  }
}
