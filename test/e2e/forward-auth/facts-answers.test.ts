/** How each proxy handles the verifier's answers: statuses, bodies, and headers for the API. */
import { afterEach, expect, it } from '@jest/globals';
import type { HeaderLine } from '../../../src/tools/conformance/wire/exchange.ts';
import type { ProxyKind } from '../../support/proxies/proxy.ts';
import { forwardedHeader, type Observation, useMeasuredProxy } from './measured-proxy.ts';
import { describeProxies } from './proxies.ts';
import { ALLOW } from './recording-check.ts';

const BODY = '{"reason":"jti_replay"}';
const REASON: HeaderLine = ['x-proofgate-reason', 'jti_replay'];

interface AnswerFact {
  /** Of the verifier. */
  readonly status: number;
  /** What the caller gets: status, reason, whose body. nginx: the shipped configuration writes the body. */
  readonly expected: { readonly [P in ProxyKind['profile']]: string };
}

const whole = (status: number) => `${status}, jti_replay, the verifier's body`;
const own = (status: number, reason = 'jti_replay') => `${status}, ${reason}, own body`;
/** The status as it is, except where it says otherwise. */
const usual = (status: number, other: Partial<AnswerFact['expected']>): AnswerFact => ({
  status,
  expected: { nginx: own(503), caddy: whole(status), envoy: whole(status), traefik: whole(status), ...other },
});

const DENIALS: readonly AnswerFact[] = [
  usual(401, { nginx: own(401) }),
  usual(403, { nginx: own(403) }),
  // What the verifier answers Envoy in place of 503.
  usual(429, { envoy: whole(503) }),
  // ext_authz over HTTP takes every 5xx for a failed check.
  usual(503, { envoy: own(503, 'verifier_unavailable') }),
  // Not the verifier's: whatever else listens there allows nothing.
  usual(500, { envoy: own(503, 'verifier_unavailable') }),
  usual(400, {}),
  usual(404, {}),
  usual(302, {}),
];

describeProxies('answers', (kind) => {
  const proxy = useMeasuredProxy(kind);
  afterEach(() => proxy.parts.check.behave(ALLOW));

  it.each(DENIALS)('$status', async ({ expected, status }) => {
    proxy.parts.check.behave({ status, headers: [REASON], body: BODY });
    const seen = await proxy.observe('http1', {});
    expect(seenByCaller(seen)).toBe(expected[kind.profile]);
    expect(seen.forwarded).toEqual([]);
  });

  // At Envoy too, where other ext_authz filters may answer 429: only that of the verifier becomes 503.
  it('a 429 that is not of the verifier stays 429', async () => {
    proxy.parts.check.behave({ status: 429, body: BODY });
    const { status } = await proxy.observe('http1', {});
    expect(status).toBe(kind.profile === 'nginx' ? 503 : 429);
  });

  it.each([201, 204, 206])('%s allows, except at Envoy', async (status) => {
    proxy.parts.check.behave({ ...ALLOW, status });
    const { forwarded } = await proxy.observe('http1', {});
    expect(forwarded).toHaveLength(kind.profile === 'envoy' ? 0 : 1);
  });

  it('replaces context headers of the client by those of the answer, or removes them', async () => {
    const others: HeaderLine[] = [
      ['x-other', 'answer'],
      ['set-cookie', 'a=b'],
    ];
    proxy.parts.check.behave({ ...ALLOW, headers: [...(ALLOW.headers ?? []), ...others] });
    const seen = await proxy.observe('http1', { headers: OF_CLIENT });
    const values = OF_CLIENT.map(([name]) => forwardedHeader(seen, name));
    // Envoy removes the credentials when the answer says so, which this one does not.
    const credentials = kind.profile === 'envoy' ? [['Passport x'], ['t'], ['s']] : [[], [], []];
    expect(values).toEqual([['client:billing'], [], ...credentials, ['client']]);
    expect([forwardedHeader(seen, 'set-cookie'), seen.answer.header('set-cookie')]).toEqual([[], []]);
  });
});

const OF_CLIENT: readonly HeaderLine[] = [
  ['x-proofgate-subject', 'root'],
  ['x-proofgate-client-id', 'root'],
  ['authorization', 'Passport x'],
  ['x-proofgate-transcript', 't'],
  ['x-proofgate-signature', 's'],
  ['x-other', 'client'],
];

function seenByCaller({ answer, status }: Observation): string {
  const [reason] = answer.header('x-proofgate-reason');
  return `${status}, ${reason}, ${answer.body === BODY ? "the verifier's" : 'own'} body`;
}
