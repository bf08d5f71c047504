/** Tests the conversion of decisions into answers: what goes to the upstream, what never does, and the encoding. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { otherNamesToRemove } from '../../../src/enforcement/answers/upstream-headers.ts';
import {
  allowedResponse,
  createResponseEncoder,
  deniedResponse,
} from '../../../src/enforcement/ext-authz-grpc/check-response.ts';
import type { CheckResponse } from '../../../src/process/ext-authz/response-messages.ts';
import { loadPackageDefinition, responseSerializers } from '../../../src/process/ext-authz/service.ts';
import { type Denial, deny } from '../../../src/protocol/reasons.ts';
import { CONTEXT_HEADERS, REQUEST_REWRITING_HEADERS } from '../../../src/protocol/wire-names.ts';
import type { AllowedDecision, Decision, DeniedDecision } from '../../../src/verifier/decision/decide.ts';
import { headersOfLines, type RequestPlan, signRequest } from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import { decodeCheckResponse } from '../../support/harness/check-client.ts';

const keys = newSiteKeys();
const site = await compileSite(siteContent(keys));
const serializers = responseSerializers(loadPackageDefinition());

const PLANS: readonly RequestPlan[] = [
  { caller: 'billing', route: 'orders-read' },
  { caller: 'billing', route: 'forward' },
  { caller: 'reporting', route: 'orders-read' },
  { caller: 'broker', route: 'everything' },
  { caller: 'brokerEc', route: 'attested' },
  { caller: 'automation', route: 'uploads' },
];

function allowed(plan: RequestPlan, snapshot = site): AllowedDecision {
  const decision = checkNow(createTestVerifier({ snapshot }).verifier, signRequest(keys, plan).facts);
  if (decision.kind !== 'allowed') throw new Error(decision.denial.reason);
  return decision;
}

function denied(denial: Denial, routeId?: string): Decision {
  return { kind: 'denied', decisionId: '7d3c4d0e-0000-4000-8000-000000000000', denial, routeId };
}

const inboundOf = (...names: string[]) => headersOfLines(names.map((name) => ({ name, value: 'v' })));
const encoder = () => createResponseEncoder(serializers);

/** Envoy's behaviour: names compare without case, and removal comes last. */
function upstreamHeaders(response: CheckResponse, inbound: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map(inbound.map((name) => [name.toLowerCase(), 'from the client']));
  for (const { header } of response.ok_response?.headers ?? []) {
    headers.set(header.key.toLowerCase(), header.value);
  }
  for (const name of response.ok_response?.headers_to_remove ?? []) headers.delete(name.toLowerCase());
  return headers;
}

const answer = (decision: Decision, ...inbound: string[]) =>
  decodeCheckResponse(encoder()(decision, inboundOf(...inbound)));

describe('an allowed request', () => {
  it('tells the upstream who called, and by what right', () => {
    const decision = allowed({ caller: 'billing', route: 'orders-read' });
    const response = answer(decision);
    expect(response.status).toEqual({ code: 0 });
    expect(response.denied_response).toBeUndefined();
    expect(Object.fromEntries(upstreamHeaders(response, []))).toEqual({
      'x-proofgate-subject': 'client:billing',
      'x-proofgate-issuer': 'https://control.shop.example/sites/shop-eu-1',
      'x-proofgate-trust-domain': 'shop.example',
      'x-proofgate-key-id': 'dk_billing',
      'x-proofgate-key-binding': 'software',
      'x-proofgate-client-id': 'billing',
      'x-proofgate-route-id': 'orders-read',
      'x-proofgate-auth-site': 'shop-eu-1',
      'x-proofgate-decision-id': decision.decisionId,
      'x-proofgate-bundle-revision': '7',
    });
  });

  it('overwrites, whichever field the gateway reads', () => {
    for (const plan of PLANS) {
      const headers = answer(allowed(plan)).ok_response?.headers ?? [];
      expect(headers.length).toBeGreaterThan(8);
      for (const { append, append_action } of headers) {
        expect({ append, append_action }).toEqual({ append: { value: false }, append_action: 2 });
      }
    }
  });

  const credentials = ['x-proofgate-transcript', 'x-proofgate-signature'];

  it('takes the credentials with it, and the passport only where the route says so', () => {
    const removed = (route: RequestPlan['route']) =>
      answer(allowed({ caller: 'billing', route })).ok_response?.headers_to_remove;
    expect(removed('orders-read')).toEqual(['authorization', ...credentials]);
    expect(removed('forward')).toEqual(credentials);
    expect(removed('bearer')).toEqual(['x-proofgate-passport', ...credentials]);
  });

  it('lets nothing of ours through from outside, nor what rewrites requests', () => {
    const ours = [
      ...Object.values(CONTEXT_HEADERS),
      ...credentials,
      'x-proofgate-reason',
      'x-proofgate-more',
    ];
    const unwanted = [...ours, 'x-proofgate', 'x-proofgate-', ...REQUEST_REWRITING_HEADERS];
    const spellings = [
      (name: string) => name,
      (name: string) => name.toUpperCase(),
      (name: string) => name.replaceAll('-', '_'),
      (name: string) => name.replaceAll('-', '.'),
      (name: string) => name.replace('-', '_').toUpperCase(),
      (name: string) => name.replace(/^x-/, 'X~'),
      (name: string) => name.replaceAll('-', ''),
      (name: string) => `-${name.replace('-', '--')}`,
    ];
    const inbound = unwanted.flatMap((name) => spellings.map((spell) => spell(name)));
    const harmless = [
      'x-my-proofgate-subject',
      'x-proofgat',
      'my-x-proofgate-subject',
      'x-original-urls',
      'proofgate',
    ];
    for (const plan of PLANS) {
      const decision = allowed(plan);
      const response = answer(decision, ...inbound, ...harmless);
      const upstream = upstreamHeaders(response, [...inbound, ...harmless]);
      const fromClient = [...upstream]
        .filter(([, value]) => value === 'from the client')
        .map(([name]) => name);
      expect(fromClient.sort()).toEqual([...harmless].sort());
      expect(upstream.get('x-proofgate-subject')).toBe(decision.caller.subject);
      expect(upstream.has('x-proofgate-client-id')).toBe(decision.caller.derivedKey !== undefined);
    }
  });

  it('never removes what it sets, whatever comes in', () => {
    const names = Object.values(CONTEXT_HEADERS);
    const anyName = fc.oneof(
      fc.constantFrom(...names, ...REQUEST_REWRITING_HEADERS),
      fc.constantFrom(...names).map((name) => name.toUpperCase()),
      fc
        .tuple(fc.constantFrom(...names), fc.nat(40))
        .map(([name, at]) => name.slice(0, at) + name.charAt(at).toUpperCase() + name.slice(at + 1)),
      fc.string({ maxLength: 30 }).map((text) => `x-proofgate-${text}`),
      fc.string({ maxLength: 30 }),
    );
    const decisions = PLANS.map((plan) => allowed(plan));
    fc.assert(
      fc.property(
        fc.constantFrom(...decisions),
        fc.array(anyName, { maxLength: 12 }),
        (decision, inbound) => {
          const { headers, headers_to_remove } = answer(decision, ...inbound).ok_response ?? {};
          const set = new Set(headers?.map(({ header }) => header.key));
          expect(headers_to_remove?.filter((name) => set.has(name.toLowerCase()))).toEqual([]);
        },
      ),
    );
  });
});

describe('the two parts of the encoding', () => {
  let decisions: readonly AllowedDecision[] = [];

  beforeAll(() => {
    decisions = PLANS.flatMap((plan) => [allowed(plan), allowed(plan)]);
  });

  it('are the encoding of the whole', () => {
    const encode = encoder();
    const inbounds = [
      [],
      ['x-proofgate-more'],
      Array.from({ length: 400 }, (_, number) => `x-proofgate-${'long'.repeat(20)}-${number}`),
    ];
    // Twice: the second time the identity part is one that was kept.
    for (const decision of [...decisions, ...decisions]) {
      for (const names of inbounds) {
        const inbound = inboundOf(...names);
        const whole = serializers.checkResponse(
          allowedResponse(decision, otherNamesToRemove(inbound.names(), decision)),
        );
        expect(encode(decision, inbound)).toEqual(whole);
      }
    }
  });

  it('do not mix up routes, callers and bundles', async () => {
    const encode = encoder();
    const headerOf = (decision: AllowedDecision, name: string) =>
      upstreamHeaders(decodeCheckResponse(encode(decision, inboundOf())), []).get(name);
    for (const decision of decisions) {
      expect(headerOf(decision, 'x-proofgate-route-id')).toBe(decision.route.routeId);
      expect(headerOf(decision, 'x-proofgate-key-id')).toBe(decision.caller.keyId);
      expect(headerOf(decision, 'x-proofgate-decision-id')).toBe(decision.decisionId);
    }
    const content = siteContent(keys);
    for (const client of content.clients ?? []) client.client_id = `new-${client.client_id}`;
    for (const key of content.derived_keys ?? []) key.client_id = `new-${key.client_id}`;
    const renamed = await compileSite(content);
    const { facts } = signRequest(keys, { caller: 'billing', route: 'orders-read' });
    const clientIds = [site, renamed, site].map((snapshot) => {
      const decision = checkNow(createTestVerifier({ snapshot }).verifier, facts);
      return decision.kind === 'allowed' ? headerOf(decision, 'x-proofgate-client-id') : 'denied';
    });
    expect(clientIds).toEqual(['billing', 'new-billing', 'billing']);
  });
});

describe('bytes of denied requests', () => {
  const DENIALS: readonly (readonly [Denial, string | undefined])[] = [
    [deny('jti_replay'), 'orders-read'],
    [deny('jti_replay'), undefined],
    [deny('request_binding_mismatch', 'target'), 'orders-read'],
    [deny('request_binding_mismatch', 'method'), 'orders-read'],
    [deny('invalid_request_proof', 'proof_expired'), 'orders-read'],
    [deny('verifier_unavailable', 'overloaded'), undefined],
  ];

  it('are the encoding of the whole, each with its own ID', () => {
    const encode = encoder();
    // Twice: the second time the rest is one that was kept.
    for (const [denial, routeId] of [...DENIALS, ...DENIALS]) {
      const decision: DeniedDecision = { kind: 'denied', decisionId: randomUUID(), denial, routeId };
      expect(encode(decision, inboundOf())).toEqual(serializers.checkResponse(deniedResponse(decision)));
    }
  });

  it('are that also for an ID of another length', () => {
    const decision: DeniedDecision = {
      kind: 'denied',
      decisionId: 'short',
      denial: deny('jti_replay'),
      routeId: 'r',
    };
    expect(encoder()(decision, inboundOf())).toEqual(serializers.checkResponse(deniedResponse(decision)));
  });
});

describe('a denied request', () => {
  it.each<[Denial, number, readonly string[]]>([
    [deny('invalid_request_proof', 'proof_expired'), 16, ['www-authenticate']],
    [deny('invalid_request_proof', 'audience'), 7, []],
    [deny('jti_replay'), 7, []],
    [deny('replay_store_unavailable', 'fenced'), 14, ['retry-after']],
    [deny('bundle_policy_missing'), 14, ['retry-after']],
    [deny('verifier_unavailable', 'internal'), 14, ['retry-after']],
  ])('%j is code %d', (denial, code, more) => {
    const { denied_response, ok_response, status } = answer(denied(denial, 'orders-read'));
    expect(ok_response).toBeUndefined();
    expect(status).toEqual({ code });
    expect(denied_response?.status).toEqual({ code: denial.status });
    const headers = new Map(denied_response?.headers.map(({ header }) => [header.key, header.value]));
    expect([...headers.keys()].sort()).toEqual(
      ['content-type', 'cache-control', 'x-proofgate-reason', 'x-proofgate-decision-id', ...more].sort(),
    );
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(headers.get('x-proofgate-reason')).toBe(denial.reason);
    for (const { append, append_action } of denied_response?.headers ?? []) {
      expect({ append, append_action }).toEqual({ append: { value: false }, append_action: 2 });
    }
    expect(JSON.parse(denied_response?.body ?? '')).toEqual({
      type: `urn:proofgate:denial:${denial.reason}`,
      title: expect.stringMatching(/./),
      status: denial.status,
      reason: denial.reason,
      ...(denial.detail === undefined ? {} : { detail: denial.detail }),
      route_id: 'orders-read',
      decision_id: '7d3c4d0e-0000-4000-8000-000000000000',
    });
  });

  it('names no route where there is none, and asks for a passport where one may help', () => {
    const { denied_response } = answer(denied(deny('invalid_request_proof', 'authorization_missing')));
    expect(JSON.parse(denied_response?.body ?? '')).not.toHaveProperty('route_id');
    const challenge = denied_response?.headers.find(({ header }) => header.key === 'www-authenticate');
    expect(challenge?.header.value).toBe('Passport');
  });
});
