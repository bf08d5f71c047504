/** JWT-SVIDs of this process from the Workload API. Source: SPIFFE_Workload_API section 6. */
import { asWorkloadApiError, connectWorkloadApi } from './workload-api.ts';
import { malformed } from './x509-svids.ts';

/** Contains a secret. */
export interface WorkloadJwtSvid {
  readonly spiffeId: string;
  readonly hint: string | undefined;
  /** Compact JWS. */
  readonly token: string;
}

export interface JwtSvidRequest {
  readonly audience: string;
  /** Default: all identities of this process. */
  readonly spiffeId?: string | undefined;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 10_000;

/**
 * At least one token, without a retry. The agent signs on demand and caches tokens for half of their lifetime.
 * @param address `unix:///PATH` or `tcp://IP:PORT`
 * @throws WorkloadApiError
 */
export async function fetchJwtSvids(
  address: string,
  { audience, spiffeId = '', signal }: JwtSvidRequest,
): Promise<readonly WorkloadJwtSvid[]> {
  const connection = connectWorkloadApi(address);
  try {
    const request = { audience: [audience], spiffe_id: spiffeId };
    const { svids } = await connection.unary('FetchJWTSVID', request, { signal, timeoutMs: TIMEOUT_MS });
    if (svids.length === 0 || svids.some(({ svid, spiffe_id }) => svid === '' || spiffe_id === '')) {
      throw malformed('without a JWT-SVID');
    }
    return svids.map(({ hint, spiffe_id, svid }) => ({
      spiffeId: spiffe_id,
      hint: hint === '' ? undefined : hint,
      token: svid,
    }));
  } catch (error) {
    throw asWorkloadApiError(error);
  } finally {
    connection.close();
  }
}
