/** Readiness of the broker for callers: fails when no proof of any caller could be verified and answered. */

import type { ReadinessCheck } from '../../process/admin/admin-server.ts';
import type { TrustBundle } from '../../spiffe/trust-bundles.ts';
import type { BrokerPorts } from '../broker-ports.ts';

type CallerSources = Pick<BrokerPorts, 'nowMs' | 'signingKeys' | 'softwareKeys' | 'trustBundles'>;

/** Counts only the trust domains that have a signing key: callers of the others are refused. */
export function callersCheck(sources: CallerSources, acceptsJwtSvids: boolean): ReadinessCheck {
  const { nowMs, signingKeys, softwareKeys, trustBundles } = sources;
  const now = nowMs();
  const hasCallers = signingKeys
    .trustDomains()
    .some(
      (trustDomain) =>
        softwareKeys.trustDomains.has(trustDomain) ||
        verifiesSvids(trustBundles.bundleOf(trustDomain), acceptsJwtSvids, now),
    );
  const problem = hasCallers
    ? undefined
    : 'no caller can get a passport: no trust domain has a signing key, and beside it a trust bundle that is valid now or a software key';
  return { name: 'callers', problem };
}

function verifiesSvids(bundle: TrustBundle | undefined, acceptsJwtSvids: boolean, nowMs: number): boolean {
  if (bundle === undefined) return false;
  const { jwtAuthorities, x509Authorities } = bundle;
  return (
    (acceptsJwtSvids && jwtAuthorities.length > 0) ||
    x509Authorities.some(({ notAfterMs, notBeforeMs }) => nowMs >= notBeforeMs && nowMs <= notAfterMs)
  );
}
