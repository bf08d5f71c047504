/** Builds Control's services, routes and jobs over one store. */

import { IssuerFetcher } from '../../process/outbound-fetch/outbound-fetch.ts';
import { isJsonObject } from '../../protocol/strict-json.ts';
import { type ControlApp, createControlApp } from '../api/app.ts';
import { registerOpenApiRoute } from '../api/openapi.ts';
import { registerChangeRoutes } from '../api/routes/changes-api.ts';
import {
  type ConfigurationRoutesDeps,
  registerConfigurationRoutes,
} from '../api/routes/configuration-api.ts';
import { registerConsoleRoutes } from '../api/routes/console-routes.ts';
import { registerDecisionRoutes } from '../api/routes/decisions-api.ts';
import { registerDeclarationRoute } from '../api/routes/declaration-api.ts';
import { registerEnrollmentPlaneRoutes } from '../api/routes/enrollments-api.ts';
import { registerExplanationRoute } from '../api/routes/explanations-api.ts';
import { registerHealthRoutes } from '../api/routes/health-api.ts';
import { registerRuntimeRoutes } from '../api/routes/runtime-api.ts';
import { registerSessionRoutes } from '../api/routes/session-api.ts';
import { registerTargetSelfRoutes } from '../api/routes/targets-api.ts';
import { CollectedSummaries } from '../decisions/collected-summaries.ts';
import { startSummaryPruning } from '../decisions/pruned-summaries.ts';
import { ReportedKeyUses } from '../decisions/reported-key-uses.ts';
import { ComparisonThread } from '../declaration/comparison-thread.ts';
import { Declarations } from '../declaration/declarations.ts';
import { createEnrollmentPlane, type EnrollmentPlane } from '../enrollment/enrollment-plane.ts';
import { Explanations } from '../explanations/explanations.ts';
import { ChangeFeed } from '../operators/change-feed.ts';
import { IdentityProvider } from '../operators/identity-provider.ts';
import { createOperators, createTokenUsage, startOperatorJobs } from '../operators/operators.ts';
import { signInSteps } from '../operators/sealed-sign-in.ts';
import { browserCookies, createSessions } from '../operators/sessions.ts';
import { SignIns } from '../operators/sign-in.ts';
import { SiteSigningKeys } from '../publishing/bundle-signing-keys.ts';
import { Distribution } from '../publishing/distribution.ts';
import { startPublisher } from '../publishing/publisher.ts';
import { keyReadiness } from '../publishing/readiness.ts';
import { enrolledProfiles } from '../publishing/signing-profiles.ts';
import { createSiteCheck } from '../publishing/site-check.ts';
import { requireRow } from '../resource/change.ts';
import { startOAuthKeyRefresh } from '../sources/oauth-key-refresh.ts';
import { UnknownOAuthKeys } from '../sources/unknown-oauth-keys.ts';
import type { ControlMetrics } from './control-metrics.ts';
import {
  type ControlPartsOptions,
  reportFailure,
  reportIdentityProvider,
  reportKeySet,
  reportOAuthKeys,
  reportPublished,
  reportRefused,
} from './control-reports.ts';

export interface ControlParts {
  readonly app: ControlApp;
  startJobs(): void;
  /** Ends long-polls, completes requests in flight, and closes connections that exceed the timeout. */
  drain(timeoutMs: number): Promise<void>;
  /** Stops the jobs and closes the distribution and the identity provider client. */
  close(): Promise<void>;
}

export async function openControlParts(options: ControlPartsOptions): Promise<ControlParts> {
  const { store, nowMs, masterKeys } = options;
  const operators = openOperators(options);
  const signingKeys = new SiteSigningKeys(masterKeys);
  const onFault = (error: unknown) => reportFailure(options, 'distribution', error);
  const distribution = new Distribution({ store, nowMs, onFault });
  const summaries = new CollectedSummaries({
    store,
    nowMs,
    onFault: (error) => reportFailure(options, 'decision_summaries', error),
  });
  const fetcher = openFetcher(options);
  const enrollment = openEnrollment(options, fetcher);
  const app = await openApp(options, operators, distribution);
  registerSessionRoutes(app, operators);
  const configuration: ConfigurationRoutesDeps = {
    store,
    nowMs,
    siteCheck: createSiteCheck(),
    createSiteKeys: (tx, siteId, now) => signingKeys.create(tx, siteId, now),
    keyring: signingKeys,
  };
  registerConfigurationRoutes(app, configuration);
  const { lifecycle } = enrollment.sources;
  const { dataDirectory, databaseUrl } = options.plan;
  const comparer = new ComparisonThread({ dataDirectory, databaseUrl });
  registerDeclarationRoute(app, new Declarations({ ...configuration, store, comparer, lifecycle }));
  registerEnrollmentPlaneRoutes(app, enrollment);
  registerTargetSelfRoutes(app, distribution);
  registerRuntimeRoutes(app, { store, nowMs, keyring: signingKeys });
  const keyUses = new ReportedKeyUses({ store, nowMs });
  const unknownKeys = new UnknownOAuthKeys({ store, nowMs });
  registerDecisionRoutes(app, { store, nowMs, summaries, keyUses, unknownKeys });
  registerChangeRoutes(app, {
    feed: new ChangeFeed({ store, nowMs, report: (error) => reportFailure(options, 'changes', error) }),
    operators: operators.operators,
    sessionCookieName: operators.cookies.session,
  });
  registerExplanationRoute(app, new Explanations({ store, nowMs }));
  registerHealthRoutes(app, () => options.readiness.isReady());
  registerOpenApiRoute(app);
  if (options.consoleDirectory !== undefined) {
    const { publicUrls } = options.plan;
    await registerConsoleRoutes(app, { directory: options.consoleDirectory, publicUrls });
  }
  const stops: (() => Promise<void>)[] = [];
  return {
    app,
    startJobs() {
      const report = (error: unknown) => reportFailure(options, 'decision_summaries', error);
      stops.push(startPublishing(options, signingKeys), enrollment.startJobs(), operators.startJobs());
      stops.push(startSummaryPruning({ store, nowMs, report }), startKeyRefresh(options, fetcher));
    },
    drain: (timeoutMs) => drain(app, timeoutMs),
    async close() {
      await Promise.all(stops.map((stop) => stop()));
      await comparer.close();
      await summaries.close();
      await distribution.close();
      await operators.identityProvider?.close();
    },
  };
}

type OperatorParts = ReturnType<typeof openOperators>;

function openOperators(options: ControlPartsOptions) {
  const { plan, settings, store, masterKeys, nowMs } = options;
  const tokenUsage = createTokenUsage(store, nowMs);
  const identityProvider = plan.identityProvider && new IdentityProvider({ ...plan.identityProvider, nowMs });
  const sessions = createSessions({ store, lifetimeMs: settings.sessionLifetimeMs, nowMs });
  const steps = signInSteps(store, masterKeys, nowMs);
  return {
    store,
    sessions,
    identityProvider,
    publicUrls: plan.publicUrls,
    cookies: browserCookies(plan.publicUrls),
    signIns: new SignIns({ identityProvider, steps, sessions }),
    operators: createOperators({ store, tokenUsage, nowMs }),
    startJobs() {
      // Operators may sign in much later; a wrong provider setting appears in the log at startup.
      identityProvider?.probe().catch((error: unknown) => reportIdentityProvider(options, error));
      const report = (error: unknown) => reportFailure(options, 'operators', error);
      return startOperatorJobs({ store, nowMs, tokenUsage, report });
    },
  };
}

function startPublishing(options: ControlPartsOptions, signingKeys: SiteSigningKeys): () => Promise<void> {
  const { store, nowMs } = options;
  return startPublisher({
    store,
    signingKeys,
    nowMs,
    onPublished: (publication) => reportPublished(options, publication),
    onFault: (activity, siteId, error) => reportFailure(options, `publishing_${activity}`, error, siteId),
  });
}

function startKeyRefresh(options: ControlPartsOptions, fetcher: IssuerFetcher): () => Promise<void> {
  const { nowMs, store } = options;
  return startOAuthKeyRefresh({
    ...{ store, nowMs, fetcher },
    onFetched: (row, outcome) => reportOAuthKeys(options, row, outcome),
    report: (error) => reportFailure(options, 'oauth_keys', error),
  });
}

function openFetcher({ plan }: ControlPartsOptions): IssuerFetcher {
  const { issuerNetworks: openedNetworks, issuerCa, issuerProxy: proxy } = plan;
  return new IssuerFetcher({
    openedNetworks,
    proxy,
    ...(issuerCa === undefined ? {} : { privateCa: issuerCa }),
  });
}

function openEnrollment(options: ControlPartsOptions, fetcher: IssuerFetcher): EnrollmentPlane {
  const { settings, store, nowMs, masterKeys } = options;
  const { publicUrls } = options.plan;
  const { workloadCaConfigmap: enrollCaConfigMap } = settings;
  return createEnrollmentPlane({
    store,
    nowMs,
    masterKeys,
    fetcher,
    publicUrls,
    profilesOfClient: enrolledProfiles,
    // Over all attached targets, as in the answer that the workload itself gets.
    readinessOfKey: (keyId) =>
      store.read(async (tx) => {
        const key = requireRow(await tx.keys.find(keyId));
        const { ready, conditions } = await keyReadiness(tx, key, undefined, nowMs());
        return { ready, conditions };
      }),
    report: (error) => reportFailure(options, 'enrollment', error),
    reportKeySet: (event) => reportKeySet(options, event),
    reportRefused: (refused) => reportRefused(options, refused),
    enrollImage: settings.workloadImage,
    ...(enrollCaConfigMap === undefined ? {} : { enrollCaConfigMap }),
    retention: { auditMs: settings.auditRetentionMs, endedKeysMs: settings.keyRetentionMs },
  });
}

async function openApp(
  { plan, settings, store, metrics, logger }: ControlPartsOptions,
  { operators, cookies }: OperatorParts,
  distribution: Distribution,
): Promise<ControlApp> {
  const app = await createControlApp({
    store,
    operators,
    targets: distribution,
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
  countRequests(app, metrics);
  return app;
}

async function drain(app: ControlApp, timeoutMs: number): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), timeoutMs).unref();
  await app.close();
  clearTimeout(cut);
}

/** Counts API responses and enrollment outcomes. */

const SUBMISSION = 'POST /v1/enrollments';
const CHALLENGE = 'POST /v1/enrollments/challenges';

/** Call before the routes are registered. */
function countRequests(app: ControlApp, metrics: ControlMetrics): void {
  app.addHook('onResponse', async (request, reply) => {
    const { url = 'none', config } = request.routeOptions;
    // The durations of a target's long-poll and of an event stream say nothing about performance.
    const isLong =
      config.access?.kind === 'target' || reply.getHeader('content-type') === 'text/event-stream';
    const seconds = isLong ? undefined : reply.elapsedTime / 1000;
    metrics.requestAnswered(url, request.method, reply.statusCode, seconds);
  });
  app.addHook('preSerialization', async (request, reply, answer: unknown) => {
    const operation = `${request.method} ${request.routeOptions.url}`;
    const isRefusedChallenge = operation === CHALLENGE && reply.statusCode >= 400;
    if (operation === SUBMISSION || isRefusedChallenge) {
      metrics.enrollmentSubmitted(outcomeOf(reply.statusCode, answer));
    }
    return answer;
  });
}

/** The state of a new enrollment or the code of a problem: both are closed sets. */
function outcomeOf(status: number, answer: unknown): string {
  if (!isJsonObject(answer)) return 'unknown';
  if (status === 200) return 'repeated';
  const outcome = status === 201 ? answer.state : answer.code;
  return typeof outcome === 'string' ? outcome : 'unknown';
}
