/** Runs `proofgate verifier`: a verifier with its ext_authz server and, if configured, its forward-authentication server. */
import type { CliContext } from '../../../process/program/output.ts';
import { type PlannedServer, type ProcessRole, runEnforcement } from '../enforcement-process.ts';
import { planExtAuthzGrpc } from './ext-authz-grpc.ts';
import { planExtAuthzHttp } from './ext-authz-http.ts';
import type { VerifierSettings } from './verifier-settings.ts';

/** Runs until SIGTERM or SIGINT; returns after Checks in flight are answered. */
export function runVerifier(
  settings: VerifierSettings,
  context: CliContext,
  role?: ProcessRole,
): Promise<void> {
  return runEnforcement({ settings, context, planServers: () => planVerifierServers(settings), role });
}

/** @throws CliError with exit code 2 */
export async function planVerifierServers(settings: VerifierSettings): Promise<readonly PlannedServer[]> {
  const http = await planExtAuthzHttp(settings);
  return [await planExtAuthzGrpc(settings), ...(http === undefined ? [] : [http])];
}
