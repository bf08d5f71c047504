/** A verifier of the middleware, opened in the test's process for the site of the end-to-end tests. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { Verifier, type VerifierOptions } from '../../../src/enforcement/programs/middleware/index.ts';
import type { DecisionEvent } from '../../../src/process/telemetry/decision-event.ts';
import { AuditTrail } from '../site/audit-trail.ts';
import { AUTHORITY, ROUTES } from '../site/routes.ts';
import { AUTH_SITE, createSite, type Site } from '../site/site.ts';
import { waitFor } from '../wait.ts';
import { type App, type Kind, startApp } from './middleware-apps.ts';

export interface OpenedVerifier {
  readonly verifier: Verifier;
  readonly auditFile: string;
  decisions(): Promise<readonly DecisionEvent[]>;
}

export async function usualOptions(site: Site, bundle: string): Promise<VerifierOptions> {
  const stateDir = await mkdtemp(join(site.directory, 'middleware-'));
  return {
    authSite: AUTH_SITE,
    externalOrigin: `http://${AUTHORITY}`,
    stateDir,
    bundle,
    bundleKeys: [site.bundleKeyFile],
    replay: 'memory',
    audit: 'required',
    auditFile: join(stateDir, 'audit.jsonl'),
  };
}

export async function openVerifier(options: VerifierOptions): Promise<OpenedVerifier> {
  const verifier = await Verifier.open(options);
  const { auditFile = '' } = options;
  const trail = new AuditTrail(auditFile);
  return {
    verifier,
    auditFile,
    decisions: async () => trail.decisions(),
  };
}

/** The memory store refuses proofs of its first moments. */
export async function untilReady(verifier: Verifier): Promise<void> {
  await waitFor('the verifier to be ready', () => verifier.status().isReady);
}

export interface Middleware {
  readonly site: Site;
  readonly bundle: string;
  readonly opened: OpenedVerifier;
  readonly verifier: Verifier;
  app(kind: Kind): App;
}

export const WEB_SOCKET_ROUTES = [ROUTES.whoAmI.route_id, ROUTES.upload.route_id];

/** One verifier for the file, and the applications of the given frameworks. */
export function useMiddleware(kinds: readonly Kind[], more: Partial<VerifierOptions> = {}): Middleware {
  const apps = new Map<Kind, App>();
  let started: { readonly site: Site; readonly bundle: string; readonly opened: OpenedVerifier } | undefined;
  beforeAll(async () => {
    const site = await createSite();
    const bundle = await site.makeBundle({ webSocketRoutes: WEB_SOCKET_ROUTES });
    const opened = await openVerifier({ ...(await usualOptions(site, bundle)), ...more });
    started = { site, bundle, opened };
    for (const kind of kinds) apps.set(kind, await startApp(kind, opened.verifier));
    await untilReady(opened.verifier);
  });
  afterAll(async () => {
    for (const app of apps.values()) await app.close();
    await started?.opened.verifier.close();
    await started?.site.remove();
  });
  const running = () => {
    if (started === undefined) throw new Error('not started yet');
    return started;
  };
  return {
    get site() {
      return running().site;
    },
    get bundle() {
      return running().bundle;
    },
    get opened() {
      return running().opened;
    },
    get verifier() {
      return running().opened.verifier;
    },
    app: (kind) => {
      const app = apps.get(kind);
      if (app === undefined) throw new Error(`${kind} was not started`);
      app.handled.length = 0;
      return app;
    },
  };
}
