/** Checks that the output of `proofgate explain` contains no part and no hash of any secret, wherever it is in the capture. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { captureOf, ExplainStage } from './explain-fixture.ts';
import { SECRET_PLACES } from './secret-places.ts';

const PIECE_CHARACTERS = 8;
// Mutation testing runs every test thousands of times, so it uses fewer runs.
const RUNS = Math.min(4, Number(process.env.PROOFGATE_TEST_MUTATIONS ?? 4));

let stage: ExplainStage;
beforeAll(async () => {
  stage = await ExplainStage.open();
});
afterAll(() => stage.close());

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const textOf = (alphabet: string, minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom(...alphabet), { minLength, maxLength }).map((characters) => characters.join(''));

/** Secrets contain no dictionary words, so that an explanation does not contain a part of one by chance. */
const secrets = fc.oneof(
  textOf(`${LETTERS}0123456789_-`, 16, 60),
  textOf(`${LETTERS}0123456789+/=`, 16, 60),
  textOf(`${LETTERS}0123456789.~!$'()*,:@`, 16, 40),
  textOf('0123456789abcdef', 24, 64),
  textOf('abcdefghijklmnopqrstuvwxyz', 16, 40),
  textOf('0123456789', 14, 20),
);

function piecesOf(secret: string): readonly string[] {
  const starts = Array.from({ length: Math.max(1, secret.length - PIECE_CHARACTERS + 1) }, (_, i) => i);
  return starts.map((start) => secret.slice(start, start + PIECE_CHARACTERS).toLowerCase());
}

/** Hash prefixes that would reveal a short secret to a dictionary attack. */
function hashesOf(secret: string): readonly string[] {
  const hash = createHash('sha256').update(secret).digest();
  return [hash.toString('hex'), hash.toString('base64url')].map((all) =>
    all.slice(0, PIECE_CHARACTERS).toLowerCase(),
  );
}

function found(said: string, texts: readonly string[]): readonly string[] {
  const lower = said.toLowerCase();
  return texts.filter((text) => lower.includes(text));
}

describe('a secret, and no 8 characters of it, nor its hash, in', () => {
  it.each(SECRET_PLACES)('$place', async ({ capture }) => {
    const property = fc.asyncProperty(secrets, fc.constantFrom('text', 'json'), async (secret, format) => {
      const { exitCode, stderr, stdout } = await stage.explain(capture(stage, secret), '--output', format);
      expect(exitCode).toBeLessThanOrEqual(2);
      expect(stderr).not.toContain('a fault of Proofgate');
      expect(found(`${stdout}${stderr}`, [...piecesOf(secret), ...hashesOf(secret)])).toEqual([]);
    });
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
  });

  it('the code of six digits that a request asks for', async () => {
    const otp = '804712';
    const target = `/v1/tenants?page=17&otp=${otp}`;
    const plan = { caller: 'broker', route: 'tenants' } as const;
    const signed = stage.sign(plan, {
      transcript: (draft) => Object.assign(draft, { target }),
      received: (wire) => ({
        ...wire,
        target: `${target}0`,
        body: { kind: 'exact', bytes: Buffer.from(otp) },
      }),
    });
    const { report, run } = await stage.report(captureOf(signed));
    expect(report.decision).toMatchObject({ detail: 'target' });
    expect(found(run.stdout, [otp, ...hashesOf(otp)])).toEqual([]);
  });
});

describe('the credentials of the request, even with --show-values, in', () => {
  it.each(SECRET_PLACES)('$place', async ({ capture }) => {
    const { jti, jws, signature, transcriptText } = stage.sign({ caller: 'billing', route: 'orders-read' });
    const transcript = Buffer.from(transcriptText, 'latin1').toString('base64url');
    const credentials = [jws, signature.toString('base64url'), transcript, `${jws} ${jti}`];
    for (const [index, credential] of credentials.entries()) {
      const args = ['--output', index % 2 === 0 ? 'text' : 'json', '--show-values'];
      const { stderr, stdout } = await stage.explain(capture(stage, credential), ...args);
      expect(found(`${stdout}${stderr}`, [credential.toLowerCase(), jti.toLowerCase()])).toEqual([]);
    }
  });
});
