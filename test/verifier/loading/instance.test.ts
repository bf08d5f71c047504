/** What a verifier says of itself to Control: it never waits for Redis, says later what Redis answered, and signs what it acknowledges. */
import { hash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { verifyAcknowledgement } from '../../../src/bundle/format/acknowledgement-signature.ts';
import { parseInstance, type SigningInstance } from '../../../src/bundle/format/instance-report.ts';
import { importPublicJwk } from '../../../src/protocol/import-public-key.ts';
import { Instance } from '../../../src/verifier/loading/refresh/instance.ts';
import { waitFor } from '../../support/wait.ts';

const STORE = 's'.repeat(22);
const SETTINGS = {
  ...{ version: '0.4.0', authSite: 'site_a', realtimeStalenessSeconds: 10, hasBreakGlass: false },
  readStoreId: undefined,
};

it('has a random ID of its run, its version, and a store of its own in memory', () => {
  const reports = [1, 2].map(() => parseInstance(new Instance(SETTINGS).text()));
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
  const instance = new Instance({ ...SETTINGS, readStoreId });
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
  const instance = new Instance({ ...SETTINGS, readStoreId });
  for (let requests = 0; requests < 5; requests += 1) instance.text();
  expect(asked).toBe(1);
});

it('signs what it acknowledges with the key of its ID, for one site, target, position, outcome and setting', () => {
  const instance = new Instance(SETTINGS);
  const report = parseInstance(instance.text());
  const signing = report?.signing as SigningInstance;
  const key = importPublicJwk({ kty: 'OKP', crv: 'Ed25519', x: signing.publicKey });
  if (key === undefined || report === undefined) throw new Error('no key');
  const acknowledgement = { revision: 7, head: 'h'.repeat(43), outcome: 'accepted' as const };
  const header = instance.sign(acknowledgement, 'pgt_token');
  const signed = {
    ...{ ...acknowledgement, authSite: 'site_a', instanceId: report.instanceId, signing },
    tokenHash: hash('sha256', 'pgt_token', 'base64url'),
  };
  expect(verifyAcknowledgement(signed, header, key)).toMatchObject({ hasEnded: false });
  const others = [
    { authSite: 'site_b' },
    { tokenHash: hash('sha256', 'pgt_other', 'base64url') },
    { instanceId: STORE },
    { revision: 8 },
    { head: 'i'.repeat(43) },
    { outcome: 'refused' as const },
    { signing: { ...signing, realtimeStalenessSeconds: 1 } },
    { signing: { ...signing, hasBreakGlass: true } },
  ];
  for (const other of others)
    expect(verifyAcknowledgement({ ...signed, ...other }, header, key)).toBeUndefined();
  for (const text of [header.replace(/^./, '2'), `${header} ended`]) {
    expect(verifyAcknowledgement(signed, text, key)).toBeUndefined();
  }
});

it('has the ID of its key: another key with the ID, or another spelling of the key, is no instance', () => {
  const [one, other] = [new Instance(SETTINGS).text(), new Instance(SETTINGS).text()];
  expect(parseInstance(one)?.signing).toMatchObject({ realtimeStalenessSeconds: 10, hasBreakGlass: false });
  const keyOf = (text: string) => /key=(\S+)/.exec(text)?.[1] ?? '';
  expect(parseInstance(one.replace(keyOf(one), keyOf(other)))).toBeUndefined();
  const next = String.fromCharCode(keyOf(one).charCodeAt(42) + 1);
  expect(parseInstance(one.replace(keyOf(one), keyOf(one).slice(0, 42) + next))).toBeUndefined();
});
