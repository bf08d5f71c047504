/** Selects among the values of --public-url by a request's Host header. The header never adds a host. */
import type { FastifyRequest } from 'fastify';

/** Values of --public-url. The first is the default when the request's host matches none. Never empty. */
export type PublicUrls = readonly [string, ...string[]];

function publicUrlOf({ host }: FastifyRequest, urls: PublicUrls): string | undefined {
  return urls.find((url) => new URL(url).host === host);
}

export function isPublicHost(request: FastifyRequest, urls: PublicUrls): boolean {
  return publicUrlOf(request, urls) !== undefined;
}

export function baseUrlOf(request: FastifyRequest, urls: PublicUrls): string {
  return publicUrlOf(request, urls) ?? urls[0];
}

/** The path of the public URL: empty, or without a trailing slash. */
export function pathPrefixOf(request: FastifyRequest, urls: PublicUrls): string {
  const { pathname } = new URL(baseUrlOf(request, urls));
  return pathname === '/' ? '' : pathname;
}

export function originsOf(urls: PublicUrls): readonly string[] {
  return urls.map((url) => new URL(url).origin);
}
