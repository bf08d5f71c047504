/** Control's services, routes and jobs, put together over one store. */
import { type ControlApp, createControlApp } from '../control/api/app.ts';
import { registerOpenApiRoute } from '../control/api/openapi.ts';
import { registerSessionRoutes } from '../control/api/routes/session.ts';
import { Refusal } from '../control/domain/refusal.ts';
import { browserCookies } from '../control/operators/browser-cookies.ts';
import { IdentityProvider } from '../control/operators/identity-provider.ts';
import { createOperators } from '../control/operators/operators.ts';
import { signInSteps } from '../control/operators/sealed-sign-in.ts';
import { createSessions } from '../control/operators/sessions.ts';
import { SignIns } from '../control/operators/sign-in.ts';
import { createTokenUsage } from '../control/operators/token-usage.ts';
import { startRetentionJob } from '../control/retention/retention-job.ts';
import type { MasterKey } from '../control/secrets/master-key.ts';
import type { ControlStore } from '../control/store/port.ts';
import type { ControlMetrics } from '../telemetry/control-metrics.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { ControlPlan } from './control-plan.ts';
import type { ControlReadiness } from './control-readiness.ts';
import type { ControlSettings } from './control-settings.ts';

export interface ControlPartsOptions {
  readonly plan: ControlPlan;
  readonly settings: ControlSettings;
  readonly store: ControlStore;
  readonly masterKey: MasterKey;
  readonly metrics: ControlMetrics;
  readonly logger: Logger;
  readonly nowMs: () => number;
  readonly readiness: ControlReadiness;
}

export interface ControlParts {
  readonly app: ControlApp;
  startJobs(): void;
  /** Ends long-polls, answers what is in flight; cuts off what takes longer. */
  drain(timeoutMs: number): Promise<void>;
  /** Ends the jobs and whatever else is open. */
  close(): Promise<void>;
}

const TOKEN_USAGE_EVERY_MS = 15_000;

export async function openControlParts(options: ControlPartsOptions): Promise<ControlParts> {
  const { plan, settings, store, masterKey, metrics, logger, nowMs } = options;
  const tokenUsage = createTokenUsage(store, nowMs);
  const operators = createOperators({ store, tokenUsage, nowMs });
  const cookies = browserCookies(plan.publicUrls);
  const app = await createControlApp({
    store,
    operators,
    targets: { authenticate: () => Promise.reject(new Refusal('authentication_required')) },
    log: logger,
    origins: plan.publicUrls.map((url) => new URL(url).origin),
    sessionCookieName: cookies.session,
    limits: {
      workloadRequestsPerSecondPerAddress: settings.addressRate,
      enrollmentsPerSecondPerPolicy: settings.policyRate,
      requestsPerSecondPerPrincipal: settings.operatorRate,
      requestsPerSecondPerTarget: settings.targetRate,
    },
    listener: { tls: plan.tls?.material },
    trustedProxies: settings.trustedProxies,
  });
  const identityProvider =
    plan.identityProvider === undefined
      ? undefined
      : new IdentityProvider({ ...plan.identityProvider, nowMs });
  const sessions = createSessions({ store, lifetimeMs: settings.sessionLifetimeMs, nowMs });
  const steps = signInSteps(store, masterKey, nowMs);
  const signIns = new SignIns({ identityProvider, steps, sessions });
  registerSessionRoutes(app, { store, signIns, sessions, cookies, publicUrls: plan.publicUrls, nowMs });
  registerOpenApiRoute(app);
  void metrics;
  const stops: (() => Promise<void>)[] = [];
  return {
    app,
    startJobs() {
      stops.push(
        startRetentionJob({
          store,
          nowMs,
          auditRetentionMs: settings.auditRetentionMs,
          keyRetentionMs: settings.keyRetentionMs,
          report: () => metrics.jobFailed('retention'),
        }),
      );
      const timer = setInterval(() => void tokenUsage.flush().catch(() => {}), TOKEN_USAGE_EVERY_MS).unref();
      stops.push(async () => clearInterval(timer));
    },
    async drain(timeoutMs) {
      const cut = setTimeout(() => app.server.closeAllConnections(), timeoutMs).unref();
      await app.close();
      clearTimeout(cut);
    },
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await tokenUsage.flush();
      await identityProvider?.close();
    },
  };
}
