/** Control's services, routes and jobs, put together over one store. */
import { type ControlApp, createControlApp } from '../../control/api/app.ts';
import { registerOpenApiRoute } from '../../control/api/openapi.ts';
import { registerConfigurationRoutes } from '../../control/api/routes/configuration.ts';
import { registerEnrollmentPlaneRoutes } from '../../control/api/routes/enrollment-plane.ts';
import { registerHealthRoutes } from '../../control/api/routes/health.ts';
import { createSiteCheck } from '../../control/publishing/site-check.ts';
import { openEnrollmentPlane } from './enrollment.ts';
import { type OperatorParts, openOperatorParts } from './operators.ts';
import { type ControlPartsOptions, reportFailure } from './parts-options.ts';
import { openPublishingParts, type PublishingParts } from './publishing.ts';
import { countRequests } from './request-metrics.ts';

export interface ControlParts {
  readonly app: ControlApp;
  startJobs(): void;
  /** Ends long-polls, answers what is in flight; cuts off what takes longer. */
  drain(timeoutMs: number): Promise<void>;
  /** Ends the jobs and whatever else is open. */
  close(): Promise<void>;
}

export async function openControlParts(options: ControlPartsOptions): Promise<ControlParts> {
  const { store, nowMs } = options;
  const operators = openOperatorParts(options);
  const publishing = openPublishingParts(options);
  const enrollment = openEnrollmentPlane(options, publishing.forEnrollment);
  const { signingKeys } = publishing;
  const app = await createApp(options, operators, publishing);
  operators.register(app);
  registerConfigurationRoutes(app, {
    store,
    nowMs,
    siteCheck: createSiteCheck(),
    createSiteKeys: (tx, siteId, now) => signingKeys.create(tx, siteId, now),
    keyring: signingKeys,
  });
  registerEnrollmentPlaneRoutes(app, enrollment);
  publishing.register(app);
  registerHealthRoutes(app, () => options.readiness.isReady());
  registerOpenApiRoute(app);
  const stops: (() => Promise<void>)[] = [];
  return {
    app,
    startJobs() {
      publishing.startJobs();
      stops.push(
        enrollment.startJobs(),
        operators.startJobs((error) => reportFailure(options, 'operators', error)),
      );
    },
    drain: (timeoutMs) => drain(app, timeoutMs),
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await publishing.close();
      await operators.close();
    },
  };
}

async function createApp(
  options: ControlPartsOptions,
  operators: OperatorParts,
  { distribution }: PublishingParts,
): Promise<ControlApp> {
  const { plan, settings, store, metrics, logger } = options;
  const app = await createControlApp({
    store,
    operators: operators.operators,
    targets: distribution,
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
  countRequests(app, metrics);
  return app;
}

async function drain(app: ControlApp, timeoutMs: number): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), timeoutMs).unref();
  await app.close();
  clearTimeout(cut);
}
