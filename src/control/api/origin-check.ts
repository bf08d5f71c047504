/**
 * Requests that a browser makes for somebody else's page. A session cookie is `SameSite`, and this is the second lock:
 * what changes something must come from a page of ours.
 * Source: docs/control.md "API"; Fetch Metadata Request Headers (W3C), RFC 6454 section 7.
 */
import type { FastifyRequest } from 'fastify';
import { Refusal } from '../domain/refusal.ts';

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * Browsers that know it tell the truth in `Sec-Fetch-Site`; older ones in `Origin`. Whoever says neither is refused.
 * @param origins `scheme://authority` of pages that may
 * @throws Refusal `origin_forbidden`
 */
export function assertSameOrigin(request: FastifyRequest, origins: readonly string[]): void {
  if (SAFE_METHODS.has(request.method)) return;
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined && !origins.includes(origin)) throw new Refusal('origin_forbidden');
  if (site !== undefined && site !== 'same-origin') throw new Refusal('origin_forbidden');
  if (origin === undefined && site === undefined) throw new Refusal('origin_forbidden');
}
