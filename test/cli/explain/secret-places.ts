/** Every place of a capture that can contain a secret, each with a capture that has one there. */

import { rawCheckRequest } from '../../support/fixtures/check-request.ts';
import type {
  ClaimsDraft,
  RequestEdits,
  TranscriptDraft,
  WireRequest,
} from '../../support/fixtures/signed-request.ts';
import { captureOf, type ExplainStage, eventOf, protobufJson, withLines } from './explain-fixture.ts';

export interface SecretPlace {
  readonly place: string;
  /** @returns the text of the capture, which is not always JSON */
  capture(stage: ExplainStage, secret: string): string;
}

const plan = { caller: 'broker', route: 'tenants' } as const;
const text = (capture: object): string => JSON.stringify(capture);

const received = (
  place: string,
  change: (wire: WireRequest, secret: string) => WireRequest,
): SecretPlace => ({
  place,
  capture: (stage, secret) => text(captureOf(stage.sign(plan, { received: (wire) => change(wire, secret) }))),
});

const signed = (place: string, edits: (secret: string) => RequestEdits): SecretPlace => ({
  place,
  capture: (stage, secret) => text(captureOf(stage.sign(plan, edits(secret)))),
});

const inTranscript = (place: string, change: (draft: TranscriptDraft, secret: string) => void): SecretPlace =>
  signed(`transcript: ${place}`, (secret) => ({ transcript: (draft) => change(draft, secret) }));

const inClaims = (place: string, change: (claims: ClaimsDraft, secret: string) => void): SecretPlace =>
  signed(`passport: ${place}`, (secret) => ({ claims: (claims) => change(claims, secret) }));

/** A place in the capture outside the request. */
const inCapture = (
  place: string,
  change: (capture: { [name: string]: unknown }, secret: string) => object,
) => ({
  place: `capture: ${place}`,
  capture: (stage: ExplainStage, secret: string) => text(change({ ...captureOf(stage.sign(plan)) }, secret)),
});

const inEvent = (member: string): SecretPlace =>
  inCapture(`event ${member}`, (capture, secret) => ({
    ...capture,
    event: { ...Object(capture.event), [member]: secret },
  }));

interface HttpDraft {
  [name: string]: unknown;
}

const inCheckRequest = (place: string, change: (http: HttpDraft, secret: string) => void): SecretPlace => ({
  place: `CheckRequest: ${place}`,
  capture(stage, secret) {
    const check = JSON.parse(text(protobufJson(rawCheckRequest(stage.sign(plan).wire), 'snake')));
    change(check.attributes.request.http, secret);
    return text(check);
  },
});

const requests: readonly SecretPlace[] = [
  received('an unsigned header', (wire, secret) => withLines(wire, ['x-other', secret])),
  received('the name of a header', (wire, secret) => withLines(wire, [secret.replaceAll(/\W/g, '-'), 'x'])),
  received('a header that is signed', (wire, secret) => ({
    ...wire,
    headers: wire.headers.map((line) => (line.name === 'x-tenant' ? { ...line, value: secret } : line)),
  })),
  received('Authorization', (wire, secret) => withAuthorization(wire, `Bearer ${secret}`)),
  received('a passport that is none', (wire, secret) => withAuthorization(wire, `Passport ${secret}`)),
  received('beside the passport', (wire, secret) => withLines(wire, ['authorization', secret])),
  received('a value in the query', (wire, secret) => ({ ...wire, target: `${wire.target}&a=${secret}` })),
  received('a name in the query', (wire, secret) => ({ ...wire, target: `${wire.target}&${secret}=a` })),
  received('all of the query', (wire, secret) => ({ ...wire, target: `/v1/tenants?${secret}` })),
  received('a path without a route', (wire, secret) => ({ ...wire, target: `/files/${secret}/a` })),
  received('a path with one', (wire, secret) => ({ ...wire, target: `/v1/orders/${secret}` })),
  received('a path that is not canonical', (wire, secret) => ({
    ...wire,
    target: `/a//${secret}#${secret}`,
  })),
  received('a target without a slash', (wire, secret) => ({ ...wire, target: secret })),
  received('a user before the host', (wire, secret) => ({
    ...wire,
    authority: `${secret}@${wire.authority}`,
  })),
  received('the host', (wire, secret) => ({ ...wire, authority: `${secret}.shop.example` })),
  received('the method', (wire, secret) => ({ ...wire, method: secret })),
  received('the scheme', (wire, secret) => ({ ...wire, scheme: secret })),
  received('the body', (wire, secret) => ({ ...wire, body: { kind: 'exact', bytes: Buffer.from(secret) } })),
];

function withAuthorization(wire: WireRequest, value: string): WireRequest {
  const others = wire.headers.filter(({ name }) => name !== 'authorization');
  return { ...wire, headers: [...others, { name: 'authorization', value }] };
}

const TEXT_LINES = ['authSite', 'keyId', 'issuer', 'subject', 'audience', 'routeId', 'method'] as const;

const proofs: readonly SecretPlace[] = [
  ...TEXT_LINES.map((line) =>
    inTranscript(line, (draft, secret) => {
      draft[line] = secret;
    }),
  ),
  inTranscript('authority', (draft, secret) => {
    draft.authority = secret;
  }),
  inTranscript('target', (draft, secret) => {
    draft.target = `/v1/tenants/${secret}?${secret}=${secret}&${secret}`;
  }),
  inTranscript('jti', (draft, secret) => {
    draft.jti = secret
      .replaceAll(/[^A-Za-z0-9_-]/g, '-')
      .repeat(2)
      .padEnd(22, 'x')
      .slice(0, 128);
  }),
  inTranscript('passport-sha256', (draft, secret) => {
    draft.passportSha256 = `${secret
      .replaceAll(/[^A-Za-z0-9_-]/g, '-')
      .repeat(5)
      .slice(0, 42)}A`;
  }),
  inTranscript('content-sha256', (draft, secret) => {
    draft.contentSha256 = `${secret
      .replaceAll(/[^A-Za-z0-9_-]/g, '-')
      .repeat(5)
      .slice(0, 42)}A`;
  }),
  inTranscript('the value of a header', (draft, secret) => {
    draft.headers = draft.headers.map((line) => ({ ...line, value: secret }));
  }),
  inTranscript('the name of a header', (draft, secret) => {
    const name = `z${secret.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '-')}`;
    draft.headers = [...draft.headers, { name, value: secret }];
  }),
  signed('transcript: a line of its own', (secret) => ({ transcriptText: (all) => `${all}${secret}\n` })),
  inClaims('issuer', (claims, secret) => {
    claims.iss = secret;
  }),
  inClaims('subject after the prefix of a rule', (claims, secret) => {
    claims.sub = `spiffe://shop.example/ns/prod/${secret}`;
  }),
  ...['sub', 'trust_domain', 'aud', 'jti', 'key_binding', 'iat', 'cnf'].map((claim) =>
    inClaims(claim, (claims, secret) => {
      claims[claim] = secret;
    }),
  ),
  inClaims('a claim of its own', (claims, secret) => {
    claims[secret] = secret;
  }),
  inClaims('context', (claims, secret) => {
    claims.context = { environment: secret, [secret]: secret };
  }),
  inClaims('provenance', (claims, secret) => {
    claims.provenance = { image: secret, [secret]: secret };
  }),
  signed('passport: kid', (secret) => ({
    joseHeader: (header) => {
      header.kid = secret;
    },
  })),
];

const captures: readonly SecretPlace[] = [
  ...['decision_id', 'reason', 'detail', 'method', 'outcome', 'time', 'event', 'bundle_head'].map(inEvent),
  ...['bundle_revision', 'transcript_sha256', 'route_id', 'subject'].map(inEvent),
  ...['decision_id', 'reason', 'detail', 'outcome', 'time', 'event', 'issuer', 'subject', 'key_id'].map(
    (member): SecretPlace => ({
      place: `an event alone: ${member}`,
      capture(stage, secret) {
        const event = { ...eventOf(stage.sign(plan)), caller_verified: false, outcome: 'denied' };
        return text({ ...event, reason: 'invalid_request_proof', [member]: secret });
      },
    }),
  ),
  ...['Authorization', 'X-Proofgate-Transcript', 'X-Proofgate-Signature'].map(
    (name): SecretPlace => ({
      place: `the output of sign: ${name}`,
      capture(stage, secret) {
        const { headers } = stage.sign(plan).wire;
        const credentials = headers.filter((line) => /^authorization$|^x-proofgate-/.test(line.name));
        const output = Object.fromEntries(credentials.map((line) => [line.name, line.value]));
        return text({ ...output, [name.toLowerCase()]: secret });
      },
    }),
  ),
  inCapture('event: a detail that names a header', (capture, secret) => ({
    ...capture,
    event: { ...Object(capture.event), outcome: 'denied', detail: `header.${secret}` },
  })),
  inCapture('a member that there is not', (capture, secret) => ({ ...capture, [secret]: 1 })),
  ...['method', 'headers', 'event', 'body_base64', 'body'].map((member) =>
    inCapture(`${member} is something else`, (capture, secret) => ({
      ...capture,
      [member]: { [secret]: [secret] },
    })),
  ),
  inCapture('a header line without a colon', (capture, secret) => ({ ...capture, headers: [secret] })),
  inCapture('a header that is no text', (capture, secret) => ({ ...capture, headers: { [secret]: 1 } })),
  inCapture('a line as the name of a header', (capture, secret) => ({
    ...capture,
    headers: { [`Authorization: Passport ${secret}`]: { [secret]: null } },
  })),
  inCapture('body_base64', (capture, secret) => ({ ...capture, body_base64: `${secret}%` })),
  {
    place: 'capture: a member twice',
    capture: (_, secret) => `{"headers":{${JSON.stringify(secret)}:"a",${JSON.stringify(secret)}:"b"}}`,
  },
  { place: 'capture: no JSON', capture: (_, secret) => `{"method": ${secret}` },
  { place: 'capture: a text', capture: (_, secret) => JSON.stringify(secret) },
  inCheckRequest('a member that there is not', (http, secret) => {
    http[secret] = secret;
  }),
  inCheckRequest('raw bytes', (http, secret) => {
    http.header_map = { headers: [{ key: secret, raw_value: `${secret}%` }] };
  }),
  inCheckRequest('a header that is no text', (http, secret) => {
    http.headers = { [secret]: [secret] };
  }),
  inCheckRequest('merged headers', (http, secret) => {
    http.header_map = undefined;
    http.headers = { [secret]: secret, authorization: `Passport ${secret}` };
  }),
  inCheckRequest('query and fragment', (http, secret) => {
    Object.assign(http, { query: secret, fragment: secret });
  }),
];

export const SECRET_PLACES: readonly SecretPlace[] = [...requests, ...proofs, ...captures];
