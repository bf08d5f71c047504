/**
 * Cross-site request forgery check: a request that changes something must come from one of Control's own pages. The
 * session cookie's `SameSite` attribute is the first defence; this is the second.
 * Source: docs/control.md "API"; Fetch Metadata Request Headers (W3C), RFC 6454 section 7.
 */
import type { FastifyRequest } from 'fastify';
import { Refusal } from '../domain/refusal.ts';

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Current browsers send `Sec-Fetch-Site`, older ones only `Origin`. A request with neither is rejected.
 * @param origins allowed origins, `scheme://authority`
 * @throws Refusal `origin_forbidden`
 */
export function assertSameOrigin(request: FastifyRequest, origins: readonly string[]): void {
  if (SAFE_METHODS.has(request.method)) return;
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined && !origins.includes(origin)) throw new Refusal('origin_forbidden');
  if (site !== undefined && site !== 'same-origin') throw new Refusal('origin_forbidden');
  if (origin === undefined && site === undefined) throw new Refusal('origin_forbidden');
}
