/** Control's services, routes and jobs, put together over one store. */
import { type ControlApp, createControlApp } from '../control/api/app.ts';
import { registerOpenApiRoute } from '../control/api/openapi.ts';
import { registerConfigurationRoutes } from '../control/api/routes/configuration.ts';
import { registerHealthRoutes } from '../control/api/routes/health.ts';
import { Refusal } from '../control/domain/refusal.ts';
import { SiteSigningKeys } from '../control/publishing/signing-keys.ts';
import { createSiteCheck } from '../control/publishing/site-check.ts';
import type { MasterKey } from '../control/secrets/master-key.ts';
import type { ControlStore } from '../control/store/port.ts';
import type { ControlMetrics } from '../telemetry/control-metrics.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type OperatorParts, openOperatorParts } from './control-operators.ts';
import type { ControlPlan } from './control-plan.ts';
import type { ControlReadiness } from './control-readiness.ts';
import type { ControlSettings } from './control-settings.ts';
import { systemErrorCode } from './errors.ts';

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

export async function openControlParts(options: ControlPartsOptions): Promise<ControlParts> {
  const { store, nowMs, masterKey } = options;
  const operators = openOperatorParts(options);
  const app = await createApp(options, operators);
  const keyring = new SiteSigningKeys(masterKey);
  operators.register(app);
  registerConfigurationRoutes(app, {
    store,
    nowMs,
    siteCheck: createSiteCheck(),
    createSiteKeys: (tx, siteId, now) => keyring.create(tx, siteId, now),
    keyring,
  });
  registerHealthRoutes(app, () => options.readiness.isReady());
  registerOpenApiRoute(app);
  const stops: (() => Promise<void>)[] = [];
  return {
    app,
    startJobs() {
      const report = (job: string) => (error: unknown) => reportFailure(options, job, error);
      stops.push(operators.startJobs(report('operators')));
    },
    drain: (timeoutMs) => drain(app, timeoutMs),
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await operators.close();
    },
  };
}

async function createApp(options: ControlPartsOptions, operators: OperatorParts): Promise<ControlApp> {
  const { plan, settings, store, metrics, logger } = options;
  const app = await createControlApp({
    store,
    operators: operators.operators,
    targets: { authenticate: () => Promise.reject(new Refusal('authentication_required')) },
    log: logger,
    origins: plan.publicUrls.map((url) => new URL(url).origin),
    sessionCookieName: operators.cookies.session,
    limits: {
      workloadRequestsPerSecondPerAddress: settings.addressRate,
      enrollmentsPerSecondPerPolicy: settings.policyRate,
      requestsPerSecondPerPrincipal: settings.operatorRate,
      requestsPerSecondPerTarget: settings.targetRate,
    },
    listener: { tls: plan.tls?.material },
    trustedProxies: settings.trustedProxies,
  });
  app.addHook('onResponse', async (request, reply) => {
    const { url = 'none', config } = request.routeOptions;
    // A target's long-poll takes as long as there is nothing to say.
    const seconds = config.access?.kind === 'target' ? undefined : reply.elapsedTime / 1000;
    metrics.requestAnswered(url, request.method, reply.statusCode, seconds);
  });
  return app;
}

async function drain(app: ControlApp, timeoutMs: number): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), timeoutMs).unref();
  await app.close();
  clearTimeout(cut);
}

/** Its class or code only: a message may quote what the job worked on. */
function reportFailure({ metrics, logger }: ControlPartsOptions, job: string, error: unknown): void {
  metrics.jobFailed(job);
  const fault = systemErrorCode(error) ?? (error instanceof Error ? error.name : typeof error);
  logger.warn({ event: 'job_failed', job, fault }, 'a round of a job failed; it is tried again');
}
