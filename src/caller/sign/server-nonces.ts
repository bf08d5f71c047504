/**
 * Nonces that servers give for DPoP proofs, the newest of each origin (RFC 9449 sections 8 and 9).
 */
import { isDpopNonce } from '../../protocol/dpop-proof.ts';
import { DPOP_NONCE_HEADER } from '../../protocol/wire-names.ts';
import type { RequestHeader } from './request-headers.ts';

const MAX_ORIGINS = 256;

export class ServerNonces {
  readonly #byOrigin = new Map<string, string>();

  of(origin: string): string | undefined {
    return this.#byOrigin.get(origin);
  }

  /** @returns whether the answer denies the request because its proof lacked this nonce */
  learn(origin: string, status: number, headers: readonly RequestHeader[]): boolean {
    const valuesOf = (wanted: string) =>
      headers.flatMap(({ name, value }) => (name.toLowerCase() === wanted ? [value] : []));
    const [nonce, ...others] = valuesOf(DPOP_NONCE_HEADER);
    if (nonce === undefined || others.length > 0 || !isDpopNonce(nonce)) return false;
    // The map drops the origin whose nonce is the oldest.
    this.#byOrigin.delete(origin);
    this.#byOrigin.set(origin, nonce);
    const [oldest] = this.#byOrigin.keys();
    if (this.#byOrigin.size > MAX_ORIGINS && oldest !== undefined) this.#byOrigin.delete(oldest);
    return status === 401 && valuesOf('www-authenticate').some(asksForNonce);
  }
}

/** Other challenges may stand beside it, on its line too. */
function asksForNonce(challenges: string): boolean {
  return /(?:^|,)\s*DPoP\s/i.test(challenges) && /[\s,]error="?use_dpop_nonce"?(?:[\s,]|$)/i.test(challenges);
}
