/**
 * Checks that the output of `proofgate explain` contains no usable credential, for every kind of request, in both formats,
 * with any flags.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { withoutHeader } from '../../support/fixtures/signed-request.ts';
import { compileSite, siteContent } from '../../support/fixtures/snapshot.ts';
import { checkNow, createTestVerifier } from '../../support/fixtures/test-verifier.ts';
import { captureOf, ExplainStage, keys, withLines } from './explain-fixture.ts';

const read = { caller: 'billing', route: 'orders-read' } as const;
const everything = { caller: 'broker', route: 'everything' } as const;

let stage: ExplainStage;
beforeAll(async () => {
  stage = await ExplainStage.open();
});
afterAll(() => stage.close());

describe('nothing that can be spent comes out', () => {
  it('of requests of every kind, in both forms of output', async () => {
    stage.keepSecret(
      'cookie-monster',
      'unsigned-value',
      'query-token',
      'hunter2',
      'bearer-of-news',
      'tenant-two',
    );
    const tenants = { caller: 'broker', route: 'tenants' } as const;
    const captures = [
      stage.sign(read),
      stage.sign(read, { received: (wire) => withoutHeader(wire, 'x-proofgate-signature') }),
      stage.sign(read, {
        received: (wire) => ({ ...wire, target: `${wire.target}&access_token=query-token` }),
      }),
      stage.sign(read, { received: (wire) => ({ ...wire, target: '/nowhere?password=hunter2' }) }),
      stage.sign(read, { received: (wire) => ({ ...wire, authority: 'user:hunter2@api.shop.example' }) }),
      stage.sign(everything, { received: (wire) => withLines(wire, ['x-tenant', 'tenant-two']) }),
      stage.sign(everything, {
        received: (wire) => withLines(wire, ['authorization', 'Bearer bearer-of-news']),
      }),
      stage.sign(tenants, {
        transcript: (draft) => {
          draft.headers.splice(1, 0, { name: 'x-api-key', value: 'hunter2' });
        },
        received: (wire) =>
          withLines(
            wire,
            ['x-api-key', 'bearer-of-news'],
            ['cookie', 'cookie-monster'],
            ['x-other', 'unsigned-value'],
          ),
      }),
    ];
    for (const signed of captures) {
      for (const format of ['text', 'json']) {
        await stage.explain(captureOf(signed), '--output', format);
        await stage.explain(captureOf(signed), '--output', format, '--show-values');
      }
      await stage.explain(`${JSON.stringify(captureOf(signed))}}`);
    }
    const redacted = await stage.report(captureOf(captures.at(-1) ?? stage.sign(read)));
    expect(redacted.report.transcript.find(({ line }) => line === 'header.x-api-key')).toMatchObject({
      equal: false,
      signed: '[7 characters]',
    });
  });

  it('and control characters come out as what they are', async () => {
    const signed = stage.sign(
      { caller: 'broker', route: 'tenants' },
      {
        received: (wire) => ({
          ...wire,
          headers: wire.headers.map((line) =>
            line.name === 'accept' ? { ...line, value: 'a\u001b[2Jb\u009bü' } : line,
          ),
        }),
      },
    );
    const { stdout } = await stage.explain(captureOf(signed), '--show-values');
    expect(stdout).toContain('+ header.accept=a\\x1b[2Jb');
    expect(stdout.replaceAll('\n', '')).toMatch(/^[\x20-\x7e…±]*$/);
  });

  it('which the whole of what was said shows', () => {
    expect(stage.said.length).toBeGreaterThan(50_000);
    expect(stage.secrets.length).toBeGreaterThan(80);
    expect(stage.secrets.filter((secret) => stage.said.includes(secret))).toEqual([]);
  });

  it('and what was said makes no request that is allowed', async () => {
    const site = await compileSite(siteContent(keys));
    const { verifier } = createTestVerifier({ snapshot: site });
    const signed = stage.sign(read);
    const { run, report } = await stage.report(captureOf(signed), '--show-values');
    const lines = report.transcript.map(({ line, signed: value }) => `${line}=${value}`);
    const transcript = Buffer.from(['transcript-v1', ...lines, ''].join('\n'), 'latin1').toString(
      'base64url',
    );
    const words = [...new Set(run.stdout.match(/[A-Za-z0-9_.-]{20,}/g))];
    expect(words.length).toBeGreaterThan(5);
    for (const passport of words) {
      for (const signature of words) {
        const received = stage.sign(read, {
          received: (wire) => ({
            ...wire,
            headers: [
              { name: 'authorization', value: `Passport ${passport}` },
              { name: 'x-proofgate-transcript', value: transcript },
              { name: 'x-proofgate-signature', value: signature },
            ],
          }),
        });
        expect(checkNow(verifier, received.facts).kind).toBe('denied');
      }
    }
    expect(checkNow(verifier, signed.facts).kind).toBe('allowed');
  });

  it('and nothing that was said is a passport, a transcript or a signature', () => {
    const words = new Set(stage.said.match(/[A-Za-z0-9_.-]{40,}/g));
    const spendable = [...words].filter(
      (word) =>
        /^[^.]+\.[^.]+\.[^.]+$/.test(word) &&
        Buffer.from(word.split('.')[0] ?? '', 'base64url').includes('typ'),
    );
    expect(words.size).toBeGreaterThan(10);
    expect(spendable).toEqual([]);
    const decoded = [...words].map((word) => Buffer.from(word, 'base64url'));
    expect(decoded.filter((bytes) => bytes.includes('transcript-v1') || bytes.byteLength === 64)).toEqual([]);
  });
});
