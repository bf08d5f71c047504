/** Tests that unknown keys of OAuth issuers reach Control at once, and that neither callers nor an outage make more of the posts. */
import { expect, it } from '@jest/globals';
import { MAX_UNKNOWN_KEYS, type UnknownKey } from '../../../src/bundle/format/unknown-keys.ts';
import { parseWorkerMessage } from '../../../src/enforcement/programs/verifier/workers/worker-messages.ts';
import { UnknownKeysReporter } from '../../../src/verifier/summaries/unknown-keys-reporter.ts';
import { WorkerCounts, type WorkerReport } from '../../../src/verifier/summaries/worker-counts.ts';
import { waitFor } from '../../support/wait.ts';

const ISSUER = 'https://login.shop.example';
const key = (kid: string, issuer = ISSUER): UnknownKey => ({ issuer, kid });
const many = (count: number) => Array.from({ length: count }, (_, n) => key('k', `${ISSUER}/${n}`));

/** A reporter whose pauses end when the test says so. */
function reporting(post: () => Promise<unknown> = async () => 'taken') {
  const posts: (readonly UnknownKey[])[] = [];
  const pauses: { readonly waitMs: number; readonly end: () => void }[] = [];
  const reporter = new UnknownKeysReporter({
    post: (keys) => {
      posts.push(keys);
      return post();
    },
    sleep: (waitMs, signal) =>
      new Promise((resolve) => {
        pauses.push({ waitMs, end: resolve });
        signal.addEventListener('abort', () => resolve());
      }),
  });
  const pause = (number: number) => waitFor('a pause', () => pauses[number - 1]);
  return { reporter, posts, pause };
}

it('the first key is reported at once, and one of the others after the interval', async () => {
  const { pause, posts, reporter } = reporting();
  reporter.add({ unknownKey: undefined });
  reporter.merge([]);
  reporter.add({ unknownKey: key('first') });
  expect(posts).toEqual([[key('first')]]);
  for (let n = 0; n < 1000; n++) reporter.add({ unknownKey: key(`flood-${n}`) });
  const { end, waitMs } = await pause(1);
  expect([waitMs, posts.length]).toEqual([10_000, 1]);
  end();
  (await pause(2)).end();
  expect(posts).toEqual([[key('first')], [key('flood-0')]]);
  // Nothing is waiting, so the next one is reported at once again.
  await waitFor('a post', () => {
    reporter.merge([key('later')]);
    return posts.length === 3;
  });
  await reporter.close();
});

it('a post has a bounded number of keys, and the flood of one issuer displaces no other', async () => {
  const { pause, posts, reporter } = reporting();
  reporter.merge([...many(MAX_UNKNOWN_KEYS + 1), key('k')]);
  for (let n = 0; n < 100; n++) reporter.add({ unknownKey: key(`flood-${n}`, `${ISSUER}/0`) });
  (await pause(1)).end();
  await pause(2);
  expect(posts).toEqual([
    many(MAX_UNKNOWN_KEYS),
    [...many(MAX_UNKNOWN_KEYS + 1).slice(-1), key('k'), key('flood-0', `${ISSUER}/0`)],
  ]);
  await reporter.close();
});

it('a failed post is not repeated, and after the end there is none', async () => {
  const { pause, posts, reporter } = reporting(async () => {
    throw new Error('Control is not there');
  });
  reporter.merge([key('first')]);
  await pause(1);
  await reporter.close();
  reporter.merge([key('second')]);
  expect(posts).toEqual([[key('first')]]);
});

it('a worker hands them to its primary', () => {
  const reports: WorkerReport[] = [];
  const counts = new WorkerCounts((report) => reports.push(report));
  const decision = { outcome: 'denied', reason: 'invalid_request_proof', detail: 'key_unknown' } as const;
  for (const unknownKey of many(MAX_UNKNOWN_KEYS + 1)) {
    counts.add({ ...decision, routeId: undefined, method: 'GET', durationMs: 1, unknownKey });
  }
  counts.close();
  const handed = reports.filter(({ kind }) => kind === 'unknown');
  expect(handed.map((report) => parseWorkerMessage(JSON.parse(JSON.stringify(report))))).toEqual([
    { kind: 'unknown', keys: many(MAX_UNKNOWN_KEYS) },
    { kind: 'unknown', keys: many(MAX_UNKNOWN_KEYS + 1).slice(-1) },
  ]);
  for (const keys of [many(MAX_UNKNOWN_KEYS + 1), [{ issuer: ISSUER }], 'none']) {
    expect(parseWorkerMessage({ kind: 'unknown', keys })).toBeUndefined();
  }
});
