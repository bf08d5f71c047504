/** Tests facts about Envoy that the verifier relies on: how Envoy treats ext_authz answers, and missing ones. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type HeaderLine, headerValues } from '../../src/tools/conformance/wire/exchange.ts';
import { shipped } from '../support/harness/envoy-config.ts';
import { expectFailedCheck } from '../support/harness/failed-check.ts';
import {
  forwardedRequest,
  type RecordedEnvoy,
  startRecordedEnvoy,
  useRecordedEnvoys,
} from '../support/harness/fixture.ts';
import { allow, type CheckAnswer, type HeaderOption } from '../support/harness/recording-authz.ts';
import { waitFor } from '../support/wait.ts';
import { LANE_ENVOYS } from './lane-envoys.ts';

const startForTest = useRecordedEnvoys();

const get = { method: 'GET', target: '/', authority: 'api.example' } as const;
const permissionDenied = 7;

function option(key: string, value: string, how: Omit<HeaderOption, 'header'> = {}): HeaderOption {
  return { header: { key, value }, ...how };
}

const overwrite = {
  append: { value: false },
  append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
} as const satisfies Omit<HeaderOption, 'header'>;

function allowWith(ok: NonNullable<CheckAnswer['ok_response']>): CheckAnswer {
  return { ...allow, ok_response: ok };
}

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  let recorded: RecordedEnvoy;
  beforeAll(async () => {
    recorded = await startRecordedEnvoy(version, { shippedTimeouts: true });
  });
  afterEach(() => recorded.authz.behave(allow));
  afterAll(() => recorded.stop());

  async function forwardedWith(ok: NonNullable<CheckAnswer['ok_response']>, headers: readonly HeaderLine[]) {
    recorded.authz.behave(allowWith(ok));
    return forwardedRequest(await recorded.measure(recorded.http1, { ...get, headers })).headers;
  }

  const inbound = [
    ['X-A', 'theirs'],
    ['x-b', 'b'],
    ['x-a', 'theirs too'],
  ] as const;

  describe('an allow', () => {
    it.each([
      ['both fields, as recommended', overwrite],
      ['append false alone', { append: { value: false } }],
      ['append_action alone', { append_action: overwrite.append_action }],
      ['neither field: the older default of ext_authz holds', {}],
    ])('sets a header over all inbound lines with %s', async (_what, how) => {
      const headers = await forwardedWith({ headers: [option('x-a', 'ours', how)] }, inbound);
      expect(headerValues(headers, 'x-a')).toEqual(['ours']);
    });

    it('appends on request, and then keeps theirs', async () => {
      const headers = await forwardedWith(
        { headers: [option('x-a', 'ours', { append: { value: true } })] },
        inbound,
      );
      expect(headerValues(headers, 'x-a').join()).toContain('theirs');
    });

    it('removes every line of a name, however it is spelled', async () => {
      const headers = await forwardedWith({ headers_to_remove: ['x-a'] }, inbound);
      expect([headerValues(headers, 'x-a'), headerValues(headers, 'x-b')]).toEqual([[], ['b']]);
    });

    it('removes a name that is both set and removed', async () => {
      const ok = { headers: [option('x-a', 'ours', overwrite)], headers_to_remove: ['x-a'] };
      expect(headerValues(await forwardedWith(ok, inbound), 'x-a')).toEqual([]);
    });

    it('sets one header twice to the last value', async () => {
      const ok = { headers: [option('x-a', 'first', overwrite), option('x-a', 'last', overwrite)] };
      expect(headerValues(await forwardedWith(ok, inbound), 'x-a')).toEqual(['last']);
    });

    it('cannot remove Host or pseudo headers', async () => {
      const headers = await forwardedWith({ headers_to_remove: ['host', ':path', ':method'] }, []);
      expect(headerValues(headers, 'host')).toEqual(['api.example']);
    });

    it.each([
      ['a line break', 'x-a', 'a\r\nx-admin: 1'],
      ['a name that is none', 'x a', 'b'],
    ])('with %s in a header is a 503 that says so, not forwarded', async (_what, name, value) => {
      recorded.authz.behave(allowWith({ headers: [option(name, value, overwrite)] }));
      const measured = await recorded.measure(recorded.http1, get);
      expect([measured.response.status, measured.forwarded.length]).toEqual([503, 0]);
      expectFailedCheck(measured.response, 'invalid_answer');
    });
  });

  describe('a denial', () => {
    function deny(code: number): CheckAnswer {
      return {
        status: { code: permissionDenied },
        denied_response: {
          status: { code },
          headers: [
            option('content-type', 'application/problem+json', overwrite),
            option('x-proofgate-reason', 'jti_replay', overwrite),
            option('x-proofgate-decision-id', 'd-1', overwrite),
            option('www-authenticate', 'Passport', overwrite),
          ],
          body: '{"reason":"jti_replay"}',
        },
      };
    }

    it.each([401, 403, 413, 418, 503])(
      'of %i reaches the caller whole, and nothing the upstream',
      async (code) => {
        recorded.authz.behave(deny(code));
        const { response, forwarded } = await recorded.measure(recorded.http1, get);
        expect([response.status, response.body.toString(), forwarded.length]).toEqual([
          code,
          '{"reason":"jti_replay"}',
          0,
        ]);
        expect(headerValues(response.headers, 'content-type')).toEqual(['application/problem+json']);
        expect(headerValues(response.headers, 'x-proofgate-reason')).toEqual(['jti_replay']);
        expect(headerValues(response.headers, 'www-authenticate')).toEqual(['Passport']);
      },
    );

    it('without denied_response is a bare 403', async () => {
      recorded.authz.behave({ status: { code: permissionDenied } });
      const { response, forwarded } = await recorded.measure(recorded.http1, get);
      expect([response.status, response.body.length, forwarded.length]).toEqual([403, 0, 0]);
    });

    it('is logged with its reason, and without what the caller sent in secret', async () => {
      recorded.authz.behave(deny(401));
      const before = recorded.envoy.accessLog.length;
      const headers = [['authorization', 'Passport secret-1']] as const;
      await recorded.measure(recorded.http1, { ...get, target: '/logged?token=secret-2', headers });
      const line = await waitFor('the access log line', () =>
        recorded.envoy.accessLog.slice(before).find((text) => text.includes('/logged')),
      );
      expect(JSON.parse(line)).toMatchObject({
        path: '/logged',
        status: 401,
        details: 'ext_authz_denied',
        flags: 'UAEX',
        reason: 'jti_replay',
        decision_id: 'd-1',
      });
      expect(recorded.envoy.accessLog.join('\n')).not.toContain('secret-');
    });
  });

  describe('no answer', () => {
    it.each(['fault', 'silence'] as const)('(%s) is a 503 after one Check, not forwarded', async (how) => {
      recorded.authz.behave(how);
      const { response, checks, forwarded } = await recorded.measure(recorded.http1, get);
      expect([response.status, checks.length, forwarded.length]).toEqual([503, 1, 0]);
      expectFailedCheck(response, 'no_answer');
    });

    it('but an allow that is no decision, such as an empty message, is a 503 that says so', async () => {
      for (const client of [recorded.http1, recorded.http2]) {
        recorded.authz.behave({ status: { code: 0 } });
        const headers = [['x-proofgate-decision-id', 'mine']] as const;
        const { response, checks, forwarded } = await recorded.measure(client, { ...get, headers });
        expect([checks.length, forwarded.length]).toEqual([1, 0]);
        expectFailedCheck(response, 'no_decision');
      }
    });
  });
});

describe.each(LANE_ENVOYS)('Envoy %s', (version) => {
  it('answers 503 when the verifier is down', async () => {
    const recorded = await startForTest(version);
    await recorded.authz.stop();
    const { response, forwarded } = await recorded.measure(recorded.http1, get);
    expect([response.status, forwarded.length]).toEqual([503, 0]);
    expectFailedCheck(response, 'no_answer');
  });

  const failureModeAllow = { path: [...shipped.extAuthz, 'failure_mode_allow'], value: true };

  it('even under failure_mode_allow lets nothing through without a decision', async () => {
    const recorded = await startForTest(version, { edits: [failureModeAllow] });
    for (const how of ['fault', 'silence'] as const) {
      recorded.authz.behave(how);
      const { response, forwarded } = await recorded.measure(recorded.http1, get);
      expect(forwarded).toEqual([]);
      expectFailedCheck(response, 'no_decision');
    }
  });

  it('under failure_mode_allow, and no filter that asks for a decision, lets everything through without an answer, but not a denial', async () => {
    const edits = [
      failureModeAllow,
      { path: [...shipped.connectionManager, 'route_config', 'typed_per_filter_config'] },
    ];
    const recorded = await startForTest(version, { edits });
    recorded.authz.behave('fault');
    expect((await recorded.measure(recorded.http1, get)).response.status).toBe(200);
    recorded.authz.behave({ status: { code: permissionDenied } });
    expect((await recorded.measure(recorded.http1, get)).response.status).toBe(403);
  });
});
