/**
 * Serves the console: its files, and its page for every other path below `/console/`.
 * Source: CSP Level 3, WHATWG Fetch (Origin header).
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { ApiProblem } from '../../domain/api-problem.ts';
import type { ControlApp } from '../app.ts';
import { isPublicHost, type PublicUrls, pathPrefixOf } from '../public-urls.ts';
import { escaped } from '../sign-in-page.ts';

export interface ConsoleRouteParts {
  /**
   * Contains `index.html` and `assets/`, with each asset also as `.br` and `.gz`. Names of assets contain a hash of
   * their content.
   */
  readonly directory: string;
  readonly publicUrls: PublicUrls;
}

const ROUTE = {
  config: { access: { kind: 'public' } },
  schema: { hide: true, querystring: Type.Object({}, { additionalProperties: true }) },
} as const;

/** @returns whether the directory holds a console; without one, no route is registered */
export async function registerConsoleRoutes(
  app: ControlApp,
  { directory, publicUrls }: ConsoleRouteParts,
): Promise<boolean> {
  const index = await readFile(join(directory, 'index.html'), 'utf8').catch(() => undefined);
  if (index === undefined) return false;
  const assets = new Set(await readdir(join(directory, 'assets')));
  await app.register(async (pages: ControlApp) => {
    await pages.register(fastifyStatic, {
      root: join(directory, 'assets'),
      serve: false,
      preCompressed: true,
      maxAge: '1y',
      immutable: true,
    });
    pages.addHook('onRequest', async (request) => {
      if (!isPublicHost(request, publicUrls)) throw new ApiProblem('host_unknown');
    });
    const consolePath = (request: FastifyRequest) => `${pathPrefixOf(request, publicUrls)}/console/`;
    const sendPage = async (request: FastifyRequest, reply: FastifyReply) =>
      sendIndex(reply, index, consolePath(request));
    for (const path of ['/', '/console']) {
      pages.get(path, ROUTE, async (request, reply) => reply.redirect(consolePath(request), 302));
    }
    pages.get('/console/', ROUTE, sendPage);
    pages.get('/console/*', ROUTE, sendPage);
    pages.get<{ Params: { file: string } }>('/console/assets/:file', ROUTE, async (request, reply) => {
      const { file } = request.params;
      if (!assets.has(file)) throw new ApiProblem('not_found');
      return reply.header('vary', 'accept-encoding').sendFile(file);
    });
  });
  return true;
}

/** Disables browser features that the console does not use. */
const PERMISSIONS = 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()';

function sendIndex(reply: FastifyReply, index: string, base: string): FastifyReply {
  const nonce = randomBytes(16).toString('base64');
  reply.headers({
    'content-security-policy': contentPolicy(nonce),
    'x-frame-options': 'DENY',
    // Under `no-referrer`, browsers send forms with `Origin: null`.
    'referrer-policy': 'same-origin',
    'permissions-policy': PERMISSIONS,
  });
  const values: { readonly [name: string]: string } = { base, nonce };
  const page = index.replace(/\{\{(base|nonce)\}\}/g, (_, name: string) => escaped(values[name] ?? ''));
  return reply.type('text/html; charset=utf-8').serializer(String).send(page);
}

function contentPolicy(nonce: string): string {
  return [
    `default-src 'none'`,
    `script-src 'self'`,
    `style-src 'self' 'nonce-${nonce}'`,
    `connect-src 'self'`,
    `img-src 'self' data:`,
    `font-src 'self'`,
    `base-uri 'self'`,
    `form-action 'self'`,
    `frame-ancestors 'none'`,
    // The console's own policy takes text without markup: Mantine's styles.
    `require-trusted-types-for 'script'`,
    `trusted-types default`,
  ].join('; ');
}
