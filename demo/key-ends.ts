/** The two slow ways in which a key ends: revoked by the operator, expired with its token. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from './answer.ts';
import type { DemoEnvironment } from './environment.ts';
import { timeOf } from './onboarding.ts';
import { lastErrorOf } from './proofgate-cli.ts';
import { type Caller, skewSeconds } from './site.ts';

const denialTimeoutMs = 10_000;
const probeIntervalMs = 5;

/**
 * Runs `proofgate ctl revoke`, and watches for the first denial.
 *
 * @param resend sends a request that was sent before. While the key lives it is a replay; what is wrong with the key is
 *   looked at before that (specification "Request evaluation order"), so the same bytes tell when the key is gone
 * @returns how long it took, for people
 */
export async function revokeAndAwaitDenial(
  demo: DemoEnvironment,
  caller: Caller,
  resend: () => Promise<Answer>,
): Promise<string> {
  const keyId = demo.keys.get(caller)?.keyId ?? '';
  const revocation = demo.cli.begin(
    demo.operator.words('revoke', keyId, '--reason', 'pod was compromised', '--yes'),
  );
  const deadlineMs = performance.now() + denialTimeoutMs;
  let answeredAtMs: number | undefined;
  for (;;) {
    if (revocation.hasAnswered()) answeredAtMs ??= performance.now();
    const { detail } = await resend();
    if (detail === 'key_revoked') break;
    if (performance.now() > deadlineMs)
      throw new Error(`still ${detail ?? 'allowed'}: ${await said(revocation)}`);
    await delay(probeIntervalMs, undefined, { ref: false });
  }
  const deniedAtMs = performance.now();
  const { exitCode, stderr } = await revocation.ended;
  if (exitCode !== 0) throw new Error(`ctl revoke: ${lastErrorOf(stderr)}`);
  const afterMs = answeredAtMs === undefined ? undefined : Math.round(deniedAtMs - answeredAtMs);
  return afterMs === undefined
    ? 'first denied before ctl revoke had answered'
    : `first denied ${afterMs} ms after ctl revoke had answered`;
}

async function said({ ended }: ReturnType<DemoEnvironment['cli']['begin']>): Promise<string> {
  const { stdout, stderr } = await ended;
  return `${stdout}${lastErrorOf(stderr)}`;
}

/** Waits until the key has expired by every clock. @returns the time, for people */
export async function afterExpiry({ keys }: DemoEnvironment, caller: Caller): Promise<string> {
  const endedAtMs = keys.get(caller)?.expiresAtMs ?? 0;
  const waitMs = endedAtMs + skewSeconds * 1000 - Date.now();
  // Does not keep an interrupted demo alive.
  if (waitMs > 0) await delay(waitMs, undefined, { ref: false });
  return `ended with its token at ${timeOf(endedAtMs)}; clocks may differ by ${skewSeconds} s`;
}
