/** Tests of a session: each command has the documented exit code and prints what its document shows. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { placeOf } from '../../support/docs/blocks.ts';
import { documentedSession } from './plan.ts';
import { runSession, type SessionRun, whyNoSession } from './run-session.ts';
import { SESSIONS, type SessionName } from './sessions.ts';
import { unlisted, unsaid } from './shown.ts';

export const SESSION_TIMEOUT_MS = 520_000;

/** @param run the run of the session, when the file needs its results as well */
export function describeSession(name: SessionName, run = runOnce(name)): void {
  const why = whyNoSession(SESSIONS[name]);
  const isLeftOut = why !== undefined;
  if (isLeftOut && process.env.PROOFGATE_TEST_SKIPS === 'none') {
    throw new Error(`${name} cannot be pasted: ${why}`);
  }
  const block = isLeftOut ? describe.skip : describe;
  block(isLeftOut ? `${name} (${why})` : name, () => testSession(name, run));
}

/** @returns a function that runs the session when it is first called */
export function runOnce(name: SessionName): () => Promise<SessionRun> {
  let run: Promise<SessionRun> | undefined;
  return () => {
    run ??= runSession(documentedSession(name).plan);
    return run;
  };
}

function testSession(name: SessionName, runOf: () => Promise<SessionRun>): void {
  const { plan, shown } = documentedSession(name);
  let run: SessionRun | undefined;
  let hasFailed = false;
  const outputOf = (place: string) => run?.said.get(place) ?? '';
  /** Prints the transcript once, with the first failed test. */
  const orTell = (check: () => void) => {
    try {
      check();
    } catch (error) {
      if (!hasFailed) process.stdout.write(`--- session ${name}\n${run?.transcript}\n---\n`);
      hasFailed = true;
      throw error;
    }
  };
  beforeAll(async () => {
    run = await runOf();
  }, SESSION_TIMEOUT_MS);
  afterAll(() => {
    run = undefined;
  });

  it('has what stands for something of the reader’s own', () => {
    const text = plan.blocks.map((block) => block.text).join('');
    expect((plan.reads ?? []).filter(([from]) => !text.includes(from))).toEqual([]);
    const outputs = shown.map(({ block }) => block.text).join('');
    expect((plan.absent ?? []).filter((name) => !outputs.includes(name))).toEqual([]);
  });

  it('ends as the documents say, line by line', () => {
    orTell(() => {
      const ends = plan.ends ?? [];
      const failures = run?.failures ?? [];
      const begun = failures.map((failure) => ends.find((end) => failure.startsWith(end)) ?? failure);
      expect({ isWhole: run?.isWhole, failures: begun }).toEqual({ isWhole: true, failures: ends });
    });
  });

  it('says what comes of it', () => {
    orTell(() => {
      const text = plan.blocks.map((block) => outputOf(placeOf(block))).join('');
      let rest = text;
      for (const pattern of plan.says ?? []) {
        const found = pattern.exec(rest);
        expect([pattern, found !== null]).toEqual([pattern, true]);
        rest = rest.slice((found?.index ?? 0) + 1);
      }
    });
  });

  for (const { block, of } of shown) {
    it(`${placeOf(block)} is said`, () => {
      orTell(() => {
        const compare = /\blist\b|-files"$/.test(of) ? unlisted : unsaid;
        const text = (plan.absent ?? []).reduce((all, name) => all.replace(name, ''), block.text);
        expect(compare(text, outputOf(of))).toBeUndefined();
      });
    });
  }
}
