/** `@proofgate/middleware` in each framework, in the test's process: the application's handler is the upstream. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Observed, Proof } from '../../../src/enforcement/middleware/proof.ts';
import type { VerifierOptions } from '../../../src/enforcement/programs/middleware/index.ts';
import { CONTEXT_HEADERS, OBSERVED_HEADER, PROOF_HEADER } from '../../../src/protocol/wire-names.ts';
import { type HeaderLine, pairs } from '../../../src/tools/conformance/wire/exchange.ts';
import type { UpstreamRequest } from '../harness/upstream.ts';
import { STANDARD_ROUTES } from '../site/standard-routes.ts';
import type { EnforcementPoint, EnforcementPointDriver, PointOptions } from './enforcement-point.ts';
import { type Handled, type Kind, startApp } from './middleware-apps.ts';
import { openVerifier, untilReady, usualOptions } from './open-middleware.ts';

export const middlewarePoint = (kind: Kind, name: string): EnforcementPointDriver => ({
  name,
  protocols: ['HTTP/1.1'],
  start: (options) => start(kind, options),
});

async function start(kind: Kind, options: PointOptions): Promise<EnforcementPoint> {
  const { audit, becomesReady, bundleDirectory, flags = [], holderQuota, replay, site } = options;
  const opened = await openVerifier({
    ...(await usualOptions(site, bundleDirectory)),
    replay,
    holderQuota,
    // The shipped time-out is for machines that are not busy testing.
    redisTimeoutMs: replay === 'memory' ? undefined : 400,
    auditFile:
      audit === 'full_disk'
        ? '/dev/full'
        : join(await mkdtemp(join(site.directory, 'audit-')), 'audit.jsonl'),
    ...optionsOf(flags),
  });
  const app = await startApp(kind, opened.verifier);
  if (becomesReady) await untilReady(opened.verifier);
  const { handled } = app;
  return {
    address: app.address,
    upstream: {
      get requests() {
        return handled.map((each) => upstreamRequest(kind, each));
      },
      clear: () => {
        handled.length = 0;
      },
    },
    decisions: audit === 'full_disk' ? async () => [] : opened.decisions,
    stop: async () => {
      await app.close();
      await opened.verifier.close();
    },
  };
}

function upstreamRequest(
  kind: Kind,
  { body, headers, httpVersion, method, observed, proof, raw, target, trailers }: Handled,
): UpstreamRequest {
  // Hono's handlers see the Fetch API's headers, the others Node's.
  const lines =
    kind === 'hono'
      ? Object.entries(headers).map(([name, value]): HeaderLine => [name, String(value)])
      : pairs(raw);
  return {
    method,
    url: target,
    httpVersion,
    headers: [...lines, ...(observed ? observedLines(observed) : contextLines(proof))],
    trailers: trailers.map((name): HeaderLine => [name, '']),
    body,
  };
}

/** As the other points tell the upstream. */
function observedLines({ decisionId }: Observed): readonly HeaderLine[] {
  return [
    [OBSERVED_HEADER, 'denied'],
    [CONTEXT_HEADERS.decisionId, decisionId],
  ];
}

/** The flags that suites give, as options. */
function optionsOf(flags: readonly string[]): Partial<VerifierOptions> {
  const { values } = parseArgs({
    args: [...flags],
    options: {
      'allow-observe': { type: 'string', multiple: true },
      'allow-observe-unmatched': { type: 'string' },
      'observe-paths-file': { type: 'string' },
    },
  });
  return {
    allowObserve: values['allow-observe'],
    allowObserveUnmatched: values['allow-observe-unmatched'],
    observePathsFile: values['observe-paths-file'],
  };
}

function contextLines(proof: Proof): readonly HeaderLine[] {
  const values: { readonly [N in keyof typeof CONTEXT_HEADERS]: string | undefined } = {
    ...proof,
    bundleRevision: String(proof.bundleRevision),
  };
  const context = Object.entries(CONTEXT_HEADERS).flatMap(([name, header]): readonly HeaderLine[] => {
    const value = Object.entries(values).find(([key]) => key === name)?.[1];
    return value === undefined ? [] : [[header, value]];
  });
  // Other points send it on routes that say which formats they accept; the middleware always has it.
  const isOfSeveral = Object.values(STANDARD_ROUTES).some(({ route_id }) => route_id === proof.routeId);
  return isOfSeveral ? [...context, [PROOF_HEADER, proof.format]] : context;
}
