/**
 * Each refusal of the conformance suite behind filler lines: parsers that stop collecting header lines still act on them. What
 * is denied without filler is denied with it.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isWireRequest, type WireMessage } from '../../src/tools/conformance/wire/conformance-case.ts';
import type { HeaderLine, WireRequest } from '../../src/tools/conformance/wire/exchange.ts';
import type { ConformanceCase } from '../support/points/conformance-case.ts';
import type { EnforcementPointDriver } from '../support/points/enforcement-point.ts';
import { exchange } from '../support/points/exchange.ts';
import { skipUnavailable } from '../support/points/skip-unavailable.ts';
import { createSite, type Site } from '../support/site/site.ts';
import { type PointStates, pointStates } from './states.ts';
import { casesAt, messagesOf, protocolsAt } from './suite.ts';

/** Well above the number at which Node.js stops collecting by default. Each case is also sent without filler. */
const MANY = 1_100;
/** Around that number: each case has one of them. */
const AROUND: readonly number[] = [999, 1_000, 1_001];

/** @param isWhole whether cases are also sent with a number of lines around Node's limit */
export function fillerSuite(
  driver: EnforcementPointDriver,
  { isWhole }: { readonly isWhole: boolean },
): void {
  if (skipUnavailable(driver)) return;
  describe(`${driver.name}, behind filler lines`, () => {
    let site: Site;
    let states: PointStates;
    beforeAll(async () => {
      site = await createSite();
      states = pointStates(driver, site);
    });
    afterAll(async () => {
      await states.stop();
      await site.remove();
    });

    it.each(
      casesOfRequests(driver).map((one, at) => ({
        ...one,
        around: AROUND[at % AROUND.length] ?? MANY,
      })),
    )('$name', async ({ around, ...one }) => {
      const { point } = await states.of('usual');
      const counts = isWhole ? [around, MANY] : [MANY];
      for (const protocol of protocolsAt(driver, one)) {
        const { outcome: withoutFiller } = await exchange(point, protocol, lastOf(one, site, 0));
        if (one.expected.kind === 'denied') expect(withoutFiller).not.toBe('allowed');
        // What a point allows by itself may be allowed behind filler, too.
        if (withoutFiller === 'allowed') continue;
        for (const count of counts) {
          const { arrived, outcome } = await exchange(point, protocol, lastOf(one, site, count));
          expect({ protocol, count, outcome, arrived }).not.toMatchObject({ outcome: 'allowed' });
        }
      }
    });

    it.each(HIDDEN)('a request that is signed without a body, and %s', async (_what, lines, body) => {
      const { point } = await states.of('usual');
      const [allowed] = casesAt(driver).filter(({ expected }) => expected.kind === 'allowed');
      if (allowed === undefined) throw new Error('the suite has no case that is allowed');
      for (const count of isWhole ? [...AROUND, MANY] : [MANY]) {
        const request = lastOf(allowed, site, count);
        if (!isWireRequest(request)) throw new Error('the case is no plain request');
        const head = headOf(request);
        const bytes = Buffer.from(`${head}${[...lines, '', ''].join('\r\n')}${body}`, 'latin1');
        const { arrived } = await exchange(point, 'HTTP/1.1', { bytes, request });
        expect({ count, bodies: arrived.map((each) => each.body.toString('latin1')).join('') }).toEqual({
          count,
          bodies: '',
        });
      }
    });
  });
}

const HIDDEN: readonly (readonly [string, readonly string[], string])[] = [
  ['a body with a length', ['Content-Length: 5'], 'extra'],
  ['a body in chunks', ['Transfer-Encoding: chunked'], '5\r\nextra\r\n0\r\n\r\n'],
];

/** Cases of one request each in the usual state, in which every denial is one of the request itself. */
function casesOfRequests(driver: EnforcementPointDriver): readonly ConformanceCase[] {
  return casesAt(driver).filter(
    ({ name, state = 'usual' }) => state === 'usual' && !name.startsWith('jti_replay'),
  );
}

function lastOf(one: ConformanceCase, site: Site, count: number): WireMessage {
  const last = messagesOf(one, site).at(-1);
  if (last === undefined) throw new Error('the case sends nothing');
  return behindFiller(last, count);
}

const fillersOf = (count: number) => Array.from({ length: count }, (): HeaderLine => ['a', '']);

/** Filler lines behind the credentials, in front of all other headers and of the framing. */
export function behindFiller(message: WireMessage, count: number): WireMessage {
  if ('bytes' in message) return { ...message, bytes: rawBehindFiller(message.bytes, count) };
  if ('lines' in message) return { ...message, lines: linesBehindFiller(message.lines, count) };
  return { ...message, headers: linesBehindFiller(message.headers ?? [], count) };
}

const CREDENTIALS = [
  'authorization',
  'x-proofgate-passport',
  'x-proofgate-transcript',
  'x-proofgate-signature',
];

function linesBehindFiller(lines: readonly HeaderLine[], count: number): readonly HeaderLine[] {
  const firsts = CREDENTIALS.map((name) => lines.findIndex(([key]) => key.toLowerCase() === name));
  const at = firsts.some((index) => index >= 0)
    ? Math.max(...firsts) + 1
    : lines.filter(([name]) => name.startsWith(':')).length;
  return [...lines.slice(0, at), ...fillersOf(count), ...lines.slice(at)];
}

function rawBehindFiller(bytes: Uint8Array, count: number): Uint8Array {
  const text = Buffer.from(bytes).toString('latin1');
  const signature = /^x-proofgate-signature:.*\r\n/im.exec(text);
  if (signature === null) return bytes;
  const at = signature.index + signature[0].length;
  return Buffer.from(`${text.slice(0, at)}${'a:\r\n'.repeat(count)}${text.slice(at)}`, 'latin1');
}

function headOf({ authority, headers = [], method, target }: WireRequest): string {
  const lines = [['Host', authority] as const, ...headers].map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}`;
}
