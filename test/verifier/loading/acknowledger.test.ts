/** Tests which acknowledgements are sent when several come at once, and when Control does not take one of the two outcomes. */
import { expect, it } from '@jest/globals';
import type { Acknowledgement } from '../../../src/bundle/format/distribution-contract.ts';
import { Backoff, NO_JITTER } from '../../../src/process/program/backoff.ts';
import { Acknowledger } from '../../../src/verifier/loading/refresh/acknowledger.ts';
import { ControlConnection } from '../../../src/verifier/loading/refresh/control-connection.ts';
import { waitUntil } from '../../support/wait.ts';
import { closeAfterTest } from './loader-fixture.ts';
import { newControl } from './refresh-fixture.ts';

/** Its answers come when the test says. */
class ScriptedConnection extends ControlConnection {
  readonly sent: string[] = [];
  #answer: { resolve: () => void; reject: (error: Error) => void } | undefined;

  override acknowledge({ outcome, revision }: Acknowledgement): Promise<void> {
    this.sent.push(`${outcome} ${revision}`);
    return new Promise((resolve, reject) => {
      this.#answer = { resolve, reject };
    });
  }

  async answers(times = 1): Promise<void> {
    for (let left = times; left > 0; left--) {
      await waitUntil(() => this.#answer !== undefined);
      const answer = this.#answer;
      this.#answer = undefined;
      answer?.resolve();
    }
  }

  fail(): void {
    this.#answer?.reject(new Error('aborted'));
  }
}

function open() {
  const connection = new ScriptedConnection({ url: new URL('http://localhost'), readToken: async () => '' });
  const stop = new AbortController();
  const [confirmed, failures]: [number[], unknown[]] = [[], []];
  const acknowledger = new Acknowledger({
    connection,
    signal: stop.signal,
    onFailure: (error) => failures.push(error),
    onSent: ({ revision }) => confirmed.push(revision),
    backoff: new Backoff({ firstMs: 1, maxMs: 1 }),
    sleep: async () => undefined,
  });
  const send = (revision: number, outcome: Acknowledgement['outcome']) =>
    acknowledger.send({ revision, head: 'A'.repeat(43), outcome });
  return { acknowledger, confirmed, connection, failures, send, stop };
}

it('sends the latest of each outcome, also one that comes while another is under way', async () => {
  const { acknowledger, confirmed, connection, send } = open();
  send(1, 'accepted');
  for (const revision of [2, 3]) send(revision, 'accepted');
  send(4, 'refused');
  let isIdle = false;
  const idle = acknowledger.idle().then(() => {
    isIdle = true;
  });
  await connection.answers(2);
  expect(isIdle).toBe(false);
  await connection.answers();
  await idle;
  expect([connection.sent.toSorted(), confirmed.toSorted()]).toEqual([
    ['accepted 1', 'accepted 3', 'refused 4'],
    [1, 3, 4],
  ]);
  send(5, 'accepted');
  await connection.answers();
  await acknowledger.idle();
  expect(connection.sent.at(-1)).toBe('accepted 5');
});

it('reports no failure of what it gives up at its end, and sends nothing more', async () => {
  const { acknowledger, connection, failures, send, stop } = open();
  send(1, 'accepted');
  stop.abort();
  connection.fail();
  await acknowledger.idle();
  send(2, 'accepted');
  await acknowledger.idle();
  expect([connection.sent, failures]).toEqual([['accepted 1'], []]);
});

it('a rejection that Control never takes keeps no acceptance back', async () => {
  const control = await newControl();
  const connection = new ControlConnection({
    url: new URL(control.url),
    readToken: async () => 'target-token',
  });
  const stop = new AbortController();
  const failures: unknown[] = [];
  const acknowledger = new Acknowledger({
    connection,
    signal: stop.signal,
    onFailure: (error) => failures.push(error),
    onSent: () => undefined,
    backoff: new Backoff({ firstMs: 1, maxMs: 2, random: NO_JITTER }),
    sleep: async () => undefined,
  });
  closeAfterTest(async () => {
    stop.abort();
    await acknowledger.idle();
    await connection.close();
  });
  const at = (revision: number) => ({ revision, head: 'A'.repeat(43) });
  // The contract allows 512 characters.
  const never: Acknowledgement = { ...at(3), outcome: 'refused', code: 'x', detail: 'x'.repeat(513) };
  acknowledger.send(never);
  await waitUntil(() => failures.length > 0);
  for (const revision of [4, 5]) {
    acknowledger.send({ ...at(revision), outcome: 'accepted' });
    acknowledger.send(never);
    await waitUntil(() => control.acknowledgements.some((sent) => sent.revision === revision));
  }
  expect(control.acknowledgements.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted']);
});
