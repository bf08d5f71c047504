/** What a verifier says of itself to Control: it never waits for Redis, and says later what Redis answered. */
import { expect, it } from '@jest/globals';
import { parseInstance } from '../../../src/bundle/format/instance-report.ts';
import { Instance } from '../../../src/verifier/loading/refresh/instance.ts';
import { waitFor } from '../../support/wait.ts';

const STORE = 's'.repeat(22);

it('has a random ID of its run, its version, and a store of its own in memory', () => {
  const reports = [1, 2].map(() =>
    parseInstance(new Instance({ version: '0.4.0', readStoreId: undefined }).text()),
  );
  expect(reports).toMatchObject([1, 2].map(() => ({ version: '0.4.0', replayStore: 'memory' })));
  expect(reports[0]?.instanceId).not.toBe(reports[1]?.instanceId);
});

it('does not know its store while Redis does not answer, and asks again with the next request', async () => {
  let asked = 0;
  const readStoreId = async () => {
    asked += 1;
    if (asked < 3) throw new Error('Redis is not there');
    return STORE;
  };
  const instance = new Instance({ version: '0.4.0', readStoreId });
  const storeNow = () => parseInstance(instance.text())?.replayStore;
  expect(storeNow()).toBeUndefined();
  await waitFor('the store', () => storeNow() === STORE);
  expect(asked).toBe(3);
});

it('asks once at a time', () => {
  let asked = 0;
  const readStoreId = () => {
    asked += 1;
    return new Promise<string>(() => undefined);
  };
  const instance = new Instance({ version: '0.4.0', readStoreId });
  for (let requests = 0; requests < 5; requests += 1) instance.text();
  expect(asked).toBe(1);
});
