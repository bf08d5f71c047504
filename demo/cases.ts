/**
 * The cases of the demo: one for each of the specification's "Expected outcomes of verification", and some that readers often
 * ask about.
 */
import type { Answer } from './answer.ts';
import {
  type DemoRequest,
  request,
  requestBeyondGrants,
  requestThroughSigner,
  requestWithoutProfile,
  requestWithSvid,
  send,
  sendPassportAlone,
  sendSigned,
  sign,
} from './caller-requests.ts';
import type { DemoEnvironment } from './environment.ts';
import { afterExpiry, revokeAndAwaitDenial } from './key-ends.ts';
import { callers, spiffeWorkload } from './site.ts';

export type Expectation =
  | { readonly kind: 'allowed'; readonly subject: string }
  | {
      readonly kind: 'denied';
      /** An explanation for people. */
      readonly why: string;
      readonly status: number;
      readonly reason: string;
      readonly detail: string | undefined;
    }
  | {
      /** The program does not even sign. */
      readonly kind: 'not_sent';
      readonly code: string;
    };

export interface Step {
  readonly expected: Expectation;
  readonly send: (demo: DemoEnvironment) => Promise<Answer>;
}

export interface Case {
  /** Its place in the specification's table; undefined for what goes beyond it. */
  readonly number: number | undefined;
  /** The specification's name for it. */
  readonly name: string;
  readonly sent: string;
  /** The steps in order; the case passes when all of them pass. */
  readonly steps: readonly Step[];
  /** Begins before all others, since its requests need time to pass. */
  readonly beginsEarly?: true;
}

const { billing, reporting, spare, brief } = callers;
const readOrder: DemoRequest = { method: 'GET', target: '/orders/7' };
const readPayout: DemoRequest = { method: 'GET', target: '/payouts/7' };
const writeOrder: DemoRequest = { method: 'POST', target: '/orders', body: '{"item":"lamp","count":1}' };
const writeMore: DemoRequest = { ...writeOrder, body: '{"item":"lamp","count":9}' };

const allowed: Expectation = { kind: 'allowed', subject: billing.subject };

function denied(why: string, status: number, reason: string, detail?: string): Expectation {
  return { kind: 'denied', why, status, reason, detail };
}

const notGranted = denied('no grant', 403, 'source_subject_mismatch', 'not_granted');

const grantedRoute: Case = {
  number: 1,
  name: 'Granted route',
  sent: 'GET /orders/7 by billing',
  steps: [{ expected: allowed, send: (demo) => request(demo, billing, readOrder) }],
};

const writeRoute: Case = {
  number: 2,
  name: 'Write route',
  sent: 'POST /orders by billing, then reporting*',
  steps: [
    { expected: allowed, send: (demo) => request(demo, billing, writeOrder) },
    { expected: notGranted, send: (demo) => requestBeyondGrants(demo, reporting, writeOrder) },
  ],
};

const ungrantedRoute: Case = {
  number: 3,
  name: 'Ungranted route',
  sent: 'GET /payouts/7 by billing, then again*',
  steps: [
    {
      expected: { kind: 'not_sent', code: 'profile_not_found' },
      send: (demo) => requestWithoutProfile(demo, billing, readPayout),
    },
    { expected: notGranted, send: (demo) => requestBeyondGrants(demo, billing, readPayout) },
  ],
};

const reusedRequest: Case = {
  number: 4,
  name: 'Reused signed request',
  sent: 'GET /orders/7 signed once, sent twice',
  steps: [
    {
      expected: allowed,
      send: async (demo) => {
        await sign(demo, billing, readOrder, 'reused');
        return sendSigned(demo, readOrder, 'reused');
      },
    },
    {
      expected: denied('replay', 403, 'jti_replay'),
      send: (demo) => sendSigned(demo, readOrder, 'reused'),
    },
  ],
};

/** The second step shows that the body was all that was wrong, and that the forgery did not use up the request. */
const modifiedBody: Case = {
  number: 5,
  name: 'Modified signed body',
  sent: 'POST /orders: body changed, then as signed',
  steps: [
    {
      expected: denied('body hash', 403, 'request_binding_mismatch', 'content-sha256'),
      send: async (demo) => {
        await sign(demo, billing, writeOrder, 'modified');
        return sendSigned(demo, writeMore, 'modified');
      },
    },
    { expected: allowed, send: (demo) => sendSigned(demo, writeOrder, 'modified') },
  ],
};

const revokedKey: Case = {
  number: 6,
  name: 'Revoked derived key',
  sent: 'GET /orders/7, again once it is revoked',
  steps: [
    {
      expected: allowed,
      send: async (demo) => {
        await sign(demo, spare, readOrder, 'spare');
        return sendSigned(demo, readOrder, 'spare');
      },
    },
    {
      expected: denied('revoked', 401, 'invalid_request_proof', 'key_revoked'),
      send: async (demo) => {
        const remark = await revokeAndAwaitDenial(demo, spare, () => sendSigned(demo, readOrder, 'spare'));
        return { ...(await request(demo, spare, readOrder)), remark };
      },
    },
  ],
};

const readAnotherOrder: DemoRequest = { method: 'GET', target: '/orders/8' };

/** The second request was signed in time, and its own proof is good for a minute: it is the key that has ended. */
const expiredKey: Case = {
  number: 7,
  name: 'Expired derived key',
  sent: 'GET /orders/8, again once the key ended',
  beginsEarly: true,
  steps: [
    {
      expected: allowed,
      send: async (demo) => {
        const signed = ['brief-now', 'brief-late'].map((name) => sign(demo, brief, readAnotherOrder, name));
        await Promise.all(signed);
        return sendSigned(demo, readAnotherOrder, 'brief-now');
      },
    },
    {
      expected: denied('expired', 401, 'invalid_request_proof', 'key_expired'),
      send: async (demo) => {
        const remark = await afterExpiry(demo, brief);
        return { ...(await sendSigned(demo, readAnotherOrder, 'brief-late')), remark };
      },
    },
  ],
};

const noCredentials: Case = {
  number: undefined,
  name: 'No credentials',
  sent: 'GET /orders/7 with plain HTTP',
  steps: [
    {
      expected: denied('nothing to check', 401, 'invalid_request_proof', 'authorization_missing'),
      send: (demo) => send(demo, readOrder, []),
    },
  ],
};

const stolenPassport: Case = {
  number: undefined,
  name: 'Stolen passport',
  sent: 'GET /orders/7, good passport, no proof',
  steps: [
    {
      expected: denied('no proof', 401, 'invalid_request_proof', 'proof_missing'),
      send: async (demo) => {
        await sign(demo, billing, readOrder, 'stolen');
        return sendPassportAlone(demo, readOrder, 'stolen');
      },
    },
  ],
};

const readSalary: DemoRequest = { method: 'GET', target: '/salaries/7' };

const softwareKey: Case = {
  number: undefined,
  name: 'Software key',
  sent: 'GET /salaries/7 by billing*',
  steps: [
    {
      expected: denied('not attested', 403, 'insufficient_key_binding'),
      send: (demo) => requestBeyondGrants(demo, billing, readSalary),
    },
  ],
};

const attestedWorkload: Case = {
  number: undefined,
  name: 'SPIFFE workload',
  sent: 'GET /salaries/7 with an X.509-SVID',
  steps: [
    {
      expected: { kind: 'allowed', subject: spiffeWorkload.subject },
      send: (demo) => requestWithSvid(demo, readSalary),
    },
  ],
};

const unchangedProgram: Case = {
  number: undefined,
  name: 'Unchanged program',
  sent: 'curl to the signer: GET /orders/9',
  steps: [{ expected: allowed, send: (demo) => requestThroughSigner(demo, '/orders/9') }],
};

export const cases: readonly Case[] = [
  grantedRoute,
  writeRoute,
  ungrantedRoute,
  reusedRequest,
  modifiedBody,
  revokedKey,
  expiredKey,
  noCredentials,
  stolenPassport,
  softwareKey,
  attestedWorkload,
  unchangedProgram,
];
