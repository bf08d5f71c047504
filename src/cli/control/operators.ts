/** Operators, as Control knows them: their credentials, their sign-in, their sessions. */
import type { ControlApp } from '../../control/api/app.ts';
import { registerSessionRoutes } from '../../control/api/routes/session.ts';
import { Refusal } from '../../control/domain/refusal.ts';
import { type BrowserCookies, browserCookies } from '../../control/operators/browser-cookies.ts';
import { IdentityProvider } from '../../control/operators/identity-provider.ts';
import { startOperatorJobs } from '../../control/operators/operator-jobs.ts';
import { createOperators } from '../../control/operators/operators.ts';
import { signInSteps } from '../../control/operators/sealed-sign-in.ts';
import { createSessions } from '../../control/operators/sessions.ts';
import { SignIns } from '../../control/operators/sign-in.ts';
import { createTokenUsage } from '../../control/operators/token-usage.ts';
import type { Operators } from '../../control/services.ts';
import { type ControlPartsOptions, faultName } from './parts-options.ts';

export interface OperatorParts {
  readonly operators: Operators;
  readonly cookies: BrowserCookies;
  register(app: ControlApp): void;
  /** @returns how to stop */
  startJobs(report: (error: unknown) => void): () => Promise<void>;
  close(): Promise<void>;
}

export function openOperatorParts(options: ControlPartsOptions): OperatorParts {
  const { plan, settings, store, masterKey, nowMs, logger } = options;
  const tokenUsage = createTokenUsage(store, nowMs);
  const cookies = browserCookies(plan.publicUrls);
  const identityProvider = plan.identityProvider && new IdentityProvider({ ...plan.identityProvider, nowMs });
  const sessions = createSessions({ store, lifetimeMs: settings.sessionLifetimeMs, nowMs });
  const steps = signInSteps(store, masterKey, nowMs);
  const signIns = new SignIns({ identityProvider, steps, sessions });
  return {
    operators: createOperators({ store, tokenUsage, nowMs }),
    cookies,
    register: (app) =>
      registerSessionRoutes(app, { store, signIns, sessions, cookies, publicUrls: plan.publicUrls }),
    startJobs(report) {
      // Signing in may begin later; who set this up wants to know now.
      identityProvider?.probe().catch((error: unknown) => {
        const detail = error instanceof Refusal ? error.message : faultName(error);
        logger.warn({ event: 'identity_provider', detail }, 'nobody can sign in with OpenID Connect');
      });
      return startOperatorJobs({ store, nowMs, tokenUsage, report });
    },
    close: async () => identityProvider?.close(),
  };
}
