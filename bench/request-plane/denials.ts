/**
 * Measures what a denial costs at each step: a flood of invalid requests must cost less than as many valid ones. Where each
 * request of a flood brings a new passport, which the verifier must parse, the valid requests of the comparison bring new
 * passports too.
 */
import { keepOnCore, keepThisOnCore, MEASURED_CORE, OTHERS_CORE } from '../machine.ts';
import { type Bound, type Figure, figure, type Part, type PartResult, ratioBound } from '../report.ts';
import { type CostTurns, costInTurns, REQUESTS_A_SLICE, SLICES } from './cost-in-turns.ts';
import { costOf, type GrpcTarget } from './load.ts';
import { encodeRequest, fieldsOf, goodPlan, goodRequests, type RequestPlan } from './requests.ts';
import { refusing, startSiteVerifier } from './servers.ts';
import { type BenchSite, type ExtraRoute, newKey, writeSite } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

const WARM_UP_REQUESTS = 20_000;

const EXTRA_ROUTES: readonly ExtraRoute[] = [
  { routeId: 'others-only', path: '/v1/others-only', more: {}, subject: 'client:99' },
  { routeId: 'stale', path: '/v1/stale', more: { max_staleness_seconds: 1 } },
  { routeId: 'elsewhere', path: '/v1/elsewhere', more: { required_context: { environment: ['test'] } } },
];

const NOISE = 'A'.repeat(8000);

interface Flood {
  /** Reason, and detail where there is one, as the answer says them. */
  readonly expected: readonly string[];
  /** Good requests with passports that were seen before, or with such ones as the flood has. */
  readonly against: 'known' | 'new';
  /** Default: the flood costs less. */
  readonly bound?: 'none';
  readonly plan: (good: RequestPlan, site: BenchSite) => RequestPlan;
}

const changed =
  (change: Partial<RequestPlan>): Flood['plan'] =>
  (good) => ({ ...good, ...change });

const toExtraRoute =
  (routeId: string): Flood['plan'] =>
  (_, { callers: [caller] }) => {
    if (caller === undefined) throw new Error('a site without callers');
    return { caller, routeId, path: `/v1/${routeId}` };
  };

/** The signature of the request before: as costly to look at as a good one, where a damaged one may be refused early. */
const ofAnother = (() => {
  let before = 'A'.repeat(86);
  return (value: string): string => {
    const other = before;
    before = value;
    return other;
  };
})();

/** Signed like a passport, with other claims: they are read before the signature is looked at. */
const withClaims = (claims: () => string): Flood['plan'] =>
  changed({
    headers: {
      authorization: (value) => {
        const [header, , signature] = value.split('.');
        return [header, Buffer.from(claims()).toString('base64url'), signature].join('.');
      },
    },
  });

const STRANGER = newKey();

const byStranger: Flood['plan'] = (good) => ({
  ...good,
  passport: 'new',
  caller: { ...good.caller, key: STRANGER },
});

const FLOODS: { readonly [name: string]: Flood } = {
  '1: no such path': {
    expected: ['bundle_route_missing', 'no_match'],
    against: 'known',
    plan: changed({ sentPath: '/nowhere' }),
  },
  '1: path not canonical': {
    expected: ['bundle_route_missing', 'path_not_canonical'],
    against: 'known',
    plan: changed({ sentPath: `/${'%2e/'.repeat(1000)}` }),
  },
  '1: no credentials': {
    expected: ['invalid_request_proof', 'authorization_missing'],
    against: 'known',
    plan: changed({ headers: { authorization: () => undefined } }),
  },
  '1: 8 KiB of noise for a passport': {
    expected: ['invalid_request_proof', 'passport_malformed'],
    against: 'known',
    plan: changed({
      headers: { authorization: () => `Passport ${NOISE}.${'A'.repeat(90)}.${'A'.repeat(86)}` },
    }),
  },
  '1: a passport of 850 claims': {
    expected: ['invalid_request_proof', 'passport_malformed'],
    against: 'known',
    plan: withClaims(() => `{${Array.from({ length: 850 }, (_, n) => `"${n.toString(36)}":0`).join(',')}}`),
  },
  '1: a passport of claims in claims in claims': {
    expected: ['invalid_request_proof', 'passport_malformed'],
    against: 'known',
    plan: withClaims(() => `${'{"a":'.repeat(900)}0${'}'.repeat(900)}`),
  },
  '1: 8 KiB of noise for a proof': {
    expected: ['invalid_request_proof', 'proof_malformed'],
    against: 'known',
    plan: changed({ headers: { 'x-proofgate-transcript': () => NOISE } }),
  },
  '2: a source that the route does not take': {
    expected: ['source_subject_mismatch'],
    against: 'known',
    plan: toExtraRoute('others-only'),
  },
  '3: a stale bundle': {
    expected: ['stale_bundle_fail_closed'],
    against: 'known',
    plan: toExtraRoute('stale'),
  },
  '4: a context that the route does not take': {
    expected: ['context_mismatch'],
    against: 'known',
    plan: toExtraRoute('elsewhere'),
  },
  '5: a stranger’s passport under a known name, each a new one': {
    expected: ['invalid_request_proof', 'passport_signature'],
    against: 'new',
    plan: byStranger,
  },
  '5: a stranger’s passport, each a new one, beside passports that are known': {
    expected: ['invalid_request_proof', 'passport_signature'],
    against: 'known',
    bound: 'none',
    plan: byStranger,
  },
  '5: a signature that does not hold': {
    expected: ['invalid_request_proof', 'proof_signature'],
    against: 'known',
    plan: changed({ headers: { 'x-proofgate-signature': ofAnother } }),
  },
  '5: new passports, and signatures that do not hold': {
    expected: ['invalid_request_proof', 'proof_signature'],
    against: 'new',
    plan: changed({ passport: 'new', headers: { 'x-proofgate-signature': ofAnother } }),
  },
  '5: an expired proof': {
    expected: ['invalid_request_proof', 'proof_expired'],
    against: 'known',
    plan: changed({ transcript: { issuedAtSeconds: 1_000_000, expiresAtSeconds: 1_000_060 } }),
  },
  '5: another path than was signed': {
    expected: ['request_binding_mismatch', 'target'],
    against: 'known',
    plan: (good) => ({ ...good, sentPath: `${good.path}x` }),
  },
};

/** Sends once more what has just been let through. */
const REPLAYED: Flood = {
  expected: ['jti_replay'],
  against: 'known',
  plan: (good) => good,
};

export const denials: Part = {
  name: 'denials',
  title: `CPU of refusing a request, by step, ${SLICES}, in turns with good ones; at most that of those`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const site = await writeSite(workspace.directory, { routes: 10, keys: 100 }, EXTRA_ROUTES);
  const verifier = await startSiteVerifier(workspace, site);
  keepOnCore(verifier.pid, MEASURED_CORE);
  workspace.started(keepThisOnCore(OTHERS_CORE));
  await costOf(verifier, goodRequests(site, WARM_UP_REQUESTS));
  const figures: Figure[] = [];
  const bounds: Bound[] = [];
  for (const [name, flood] of [['6: replayed', REPLAYED] as const, ...Object.entries(FLOODS)]) {
    const { base, ratios, subject } = await besideGood(verifier, site, flood);
    figures.push(
      figure(name, 'µs CPU', subject),
      figure(`${name}: good ones in turns with it`, 'µs CPU', base),
    );
    if (flood.bound === 'none') figures.push(figure(`${name}, over a good one`, 'x', ratios));
    else bounds.push(ratioBound(`${name}, over a good one`, ratios, 1));
  }
  return { figures, bounds };
}

async function besideGood(verifier: GrpcTarget, site: BenchSite, flood: Flood): Promise<CostTurns> {
  const change = flood.against === 'known' ? {} : { passport: flood.against };
  let good: readonly Buffer[] = [];
  return await costInTurns(
    () => {
      good = requestsOf(site, changed(change));
      return { target: verifier, requests: good };
    },
    () => ({
      target: refusing(verifier, flood.expected),
      requests: flood === REPLAYED ? good : requestsOf(site, flood.plan),
    }),
  );
}

function requestsOf(site: BenchSite, plan: Flood['plan']): Buffer[] {
  return Array.from({ length: REQUESTS_A_SLICE }, (_, index) =>
    encodeRequest(fieldsOf(plan(goodPlan(site, index), site))),
  );
}
