/** Converts cases to published requests. The case states the expected result, never the verifier. */

import type { Reason } from '../../../src/protocol/reasons.ts';
import { partsOf } from '../../support/cases/denial-case.ts';
import { FAULTS } from '../../support/cases/one-fault.ts';
import type { VectorCase } from '../../support/cases/vector-case.ts';
import {
  AUTH_SITE,
  BROKER_ISSUER,
  CLIENT_ISSUER,
  NOW_SECONDS,
  TRUST_DOMAIN,
} from '../../support/fixtures/bundle-content.ts';
import { signVectorRequest } from '../../support/fixtures/deterministic.ts';
import type { CallerName, WireRequest } from '../../support/fixtures/signed-request.ts';
import { AUTOMATION_ISSUER, KEY_ID, type RouteId } from '../../support/fixtures/snapshot.ts';
import type {
  Expected,
  ExpectedAllowance,
  ExpectedDenial,
  ReceivedRequest,
  RequestVector,
} from './format.ts';

export const BASE_BUNDLE = 'site';
const BASE_REVISION = 7;

export function requestVectorOf(vectorCase: VectorCase): RequestVector {
  const { bundle, clockSeconds = NOW_SECONDS, edits, name, plan, realtimeStalenessSeconds = 10 } = vectorCase;
  const wire = signVectorRequest(name, plan, edits);
  return {
    name,
    bundle: bundle === 'none' ? null : (bundle?.name ?? BASE_BUNDLE),
    now: clockSeconds,
    realtime_staleness_seconds: realtimeStalenessSeconds,
    request: receivedRequest(wire),
    expected: expectedOf(vectorCase, wire),
  };
}

export function receivedRequest({ body, headers, ...line }: WireRequest): ReceivedRequest {
  return {
    method: line.method,
    scheme: line.scheme,
    authority: line.authority,
    target: line.target,
    headers: headers.map(({ name, value }) => [name, value]),
    body:
      body.kind === 'exact'
        ? { state: 'exact', base64: Buffer.from(body.bytes).toString('base64') }
        : { state: body.kind },
  };
}

function expectedOf(vectorCase: VectorCase, wire: WireRequest): Expected {
  const { alsoRemoved = [], outcome, plan } = vectorCase;
  if (outcome !== 'allowed') return expectedDenial(outcome);
  const attested = wireClaims(wire).key_binding;
  return expectedAllowance(plan.caller, plan.route, { keyBinding: String(attested), alsoRemoved });
}

/** The claims of the sent passport. */
function wireClaims({ headers }: WireRequest): { readonly [claim: string]: unknown } {
  const lineOf = (header: string) => headers.find(({ name }) => name === header)?.value;
  const value = lineOf('x-proofgate-passport') ?? lineOf('authorization') ?? '';
  return JSON.parse(Buffer.from(value.split('.')[1] ?? '', 'base64url').toString('utf8'));
}

/** @param outcome `reason/detail status` */
export function expectedDenial(outcome: string): ExpectedDenial {
  const { detail, reason, status } = partsOf(outcome);
  const step = stepOf(reason, detail);
  return { outcome: 'denied', step, reason, ...(detail === undefined ? {} : { detail }), status };
}

/** As the decision table has it: a reason is of one step, but for the two halves of `invalid_request_proof`. */
function stepOf(reason: Reason, detail: string | undefined): number {
  const row = FAULTS.find((fault) => {
    const parts = partsOf(fault.outcome);
    return parts.reason === reason && (reason !== 'invalid_request_proof' || parts.detail === detail);
  });
  if (row === undefined) throw new Error(`no step for ${reason}`);
  return row.step;
}

const IDENTITIES: {
  readonly [C in CallerName]: readonly [issuer: string, subject: string, clientId?: string];
} = {
  broker: [BROKER_ISSUER, `spiffe://${TRUST_DOMAIN}/ns/prod/sa/billing`],
  brokerEc: [BROKER_ISSUER, `spiffe://${TRUST_DOMAIN}/ns/prod/sa/search`],
  automation: [AUTOMATION_ISSUER, 'ci:release'],
  billing: [CLIENT_ISSUER, 'client:billing', 'billing'],
  reporting: [CLIENT_ISSUER, 'client:reporting', 'reporting'],
  revoked: [CLIENT_ISSUER, 'client:billing', 'billing'],
};

export function expectedAllowance(
  caller: CallerName,
  route: RouteId,
  { alsoRemoved = [], keyBinding }: { readonly keyBinding: string; readonly alsoRemoved?: readonly string[] },
): ExpectedAllowance {
  const [issuer, subject, clientId] = IDENTITIES[caller];
  const place = route === 'bearer' ? 'x-proofgate-passport' : 'authorization';
  const passport = route === 'forward' ? [] : [place];
  return {
    outcome: 'allowed',
    upstream_headers: {
      'x-proofgate-subject': subject,
      'x-proofgate-issuer': issuer,
      'x-proofgate-trust-domain': TRUST_DOMAIN,
      'x-proofgate-key-id': KEY_ID[caller],
      'x-proofgate-key-binding': keyBinding,
      ...(clientId === undefined ? {} : { 'x-proofgate-client-id': clientId }),
      'x-proofgate-route-id': route,
      'x-proofgate-auth-site': AUTH_SITE,
      'x-proofgate-bundle-revision': String(BASE_REVISION),
    },
    removed_headers: [...passport, 'x-proofgate-transcript', 'x-proofgate-signature', ...alsoRemoved].sort(),
  };
}
