/** What every replay store must do, whatever it remembers with. */
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  CONSUMED,
  REPLAYED,
  type ReplayClaim,
  type ReplayStore,
  UNAVAILABLE,
} from '../../../src/verifier/replay/store.ts';
import { claimAt, randomIdentifier } from './claims.ts';

interface ReplayStoreUnderTest {
  readonly store: ReplayStore;
  /** The clock that the store goes by, whole seconds. */
  readonly nowSeconds: () => number;
  /** The moment of the store's fence, seconds since the epoch. */
  readonly fenceMomentSeconds: () => Promise<number>;
  /** How many times the skew the fence reaches beyond its moment. */
  readonly fenceSkews: number;
}

interface Quotas {
  readonly holderQuotaPerMinute?: number;
  readonly subjectQuotaPerMinute?: number;
}

export interface ReplayStoreFactory {
  /** A serving store without records. */
  readonly create: (options: Quotas) => Promise<ReplayStoreUnderTest>;
  readonly destroy: (store: ReplayStore) => Promise<void>;
}

export function describeReplayStore(name: string, factory: ReplayStoreFactory): void {
  let created: ReplayStoreUnderTest[] = [];

  async function create(options: Quotas = {}) {
    const underTest = await factory.create(options);
    created.push(underTest);
    return underTest;
  }

  afterEach(async () => {
    for (const { store } of created) await factory.destroy(store);
    created = [];
  });

  describe(`${name}: every replay store`, () => {
    describeRemembering(create);
    describeRefusing(create);
  });
}

type Create = (options?: Quotas) => Promise<ReplayStoreUnderTest>;

function describeRemembering(create: Create): void {
  it('consumes an identifier once', async () => {
    const { store, nowSeconds } = await create();
    const claim = claimAt(nowSeconds());
    expect(await store.consume(claim)).toEqual(CONSUMED);
    expect(await store.consume(claim)).toEqual(REPLAYED);
    expect(await store.consume(claim)).toEqual(REPLAYED);
  });

  it('consumes one of 200 that come at once', async () => {
    const { store, nowSeconds } = await create();
    const claim = claimAt(nowSeconds());
    const outcomes = await Promise.all(Array.from({ length: 200 }, async () => store.consume(claim)));
    expect(outcomes.filter((outcome) => outcome.kind === 'consumed')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.kind === 'replayed')).toHaveLength(199);
  });

  it('consumes different identifiers that come at once', async () => {
    const { store, nowSeconds } = await create();
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, async () => store.consume(claimAt(nowSeconds()))),
    );
    expect(outcomes.filter((outcome) => outcome.kind === 'consumed')).toHaveLength(200);
  });

  it('tells identifiers apart by their holder-independent text alone', async () => {
    const { store, nowSeconds } = await create();
    const claim = claimAt(nowSeconds());
    expect(await store.consume(claim)).toEqual(CONSUMED);
    expect(await store.consume({ ...claim, holderThumbprint: randomIdentifier() })).toEqual(REPLAYED);
    expect(await store.consume({ ...claim, identifier: randomIdentifier() })).toEqual(CONSUMED);
  });

  it('remembers an identifier when it comes again with other times', async () => {
    const { store, nowSeconds } = await create();
    const claim = claimAt(nowSeconds());
    expect(await store.consume(claim)).toEqual(CONSUMED);
    const later: ReplayClaim = { ...claim, expiresAtSeconds: claim.expiresAtSeconds + 100 };
    expect(await store.consume(later)).toEqual(REPLAYED);
  });
}

function describeRefusing(create: Create): void {
  it('fences what its fence covers, to the second', async () => {
    const { store, nowSeconds, fenceMomentSeconds, fenceSkews } = await create();
    const covered = await fenceMomentSeconds();
    const now = nowSeconds();
    const claim = claimAt(now);
    const last = covered + fenceSkews * claim.skewSeconds;
    expect(await store.consume({ ...claim, issuedAtSeconds: last })).toEqual(UNAVAILABLE.fenced);
    expect(await store.consume({ ...claim, issuedAtSeconds: last + 1 })).toEqual(CONSUMED);
  });

  it('fences a proof that could not be remembered any more', async () => {
    const { store, nowSeconds } = await create();
    const now = nowSeconds();
    const claim = claimAt(now, { expiresAtSeconds: now - 600 });
    expect(await store.consume(claim)).toEqual(UNAVAILABLE.fenced);
    expect(await store.consume(claim)).toEqual(UNAVAILABLE.fenced);
  });

  it('moves its fence when the skew grows, and only then', async () => {
    const { store, nowSeconds } = await create();
    const now = nowSeconds();
    const claim = claimAt(now, { skewSeconds: 3 });
    expect(await store.consume(claim)).toEqual(CONSUMED);
    const wider = claimAt(now, { skewSeconds: 60, issuedAtSeconds: now });
    expect(await store.consume(wider)).toEqual(UNAVAILABLE.fenced);
    const ahead = claimAt(now, { skewSeconds: 60 });
    expect(await store.consume(ahead)).toEqual(CONSUMED);
    expect(await store.consume(ahead)).toEqual(REPLAYED);
    // Going back to the smaller one changes nothing: the larger may come again.
    expect(await store.consume(claimAt(now, { issuedAtSeconds: now, skewSeconds: 3 }))).toEqual(
      UNAVAILABLE.fenced,
    );
    expect(await store.consume({ ...claim, skewSeconds: 60 })).toEqual(REPLAYED);
  });

  it("keeps one holder's use of its quota from the others", async () => {
    const { store, nowSeconds } = await create({ holderQuotaPerMinute: 3 });
    const claim = claimAt(nowSeconds());
    const next = async () => store.consume({ ...claim, identifier: randomIdentifier() });
    expect(await store.consume(claim)).toEqual(CONSUMED);
    // A replay does not count against its holder's quota: an eavesdropper could use the quota up.
    for (let time = 0; time < 5; time += 1) expect(await store.consume(claim)).toEqual(REPLAYED);
    expect(await next()).toEqual(CONSUMED);
    expect(await next()).toEqual(CONSUMED);
    const refused = { ...claim, identifier: randomIdentifier() };
    expect(await store.consume(refused)).toEqual(UNAVAILABLE.quota);
    expect(await store.consume(refused)).toEqual(UNAVAILABLE.quota);
    expect(await store.consume({ ...refused, holderThumbprint: randomIdentifier() })).toEqual(CONSUMED);
    expect(await store.consume(claim)).toEqual(REPLAYED);
  });

  it('counts all holders of one issuer and subject together, and each subject apart', async () => {
    const { store, nowSeconds } = await create({ holderQuotaPerMinute: 2, subjectQuotaPerMinute: 3 });
    const now = nowSeconds();
    const { holderThumbprint, subjectHash } = claimAt(now);
    const consume = (changes: Partial<ReplayClaim>) => store.consume(claimAt(now, changes));
    expect(await consume({ holderThumbprint, subjectHash })).toEqual(CONSUMED);
    expect(await consume({ holderThumbprint, subjectHash })).toEqual(CONSUMED);
    // What the holder's quota denies does not count for the subject.
    for (let time = 0; time < 3; time += 1) {
      expect(await consume({ holderThumbprint, subjectHash })).toEqual(UNAVAILABLE.quota);
    }
    expect(await consume({ subjectHash })).toEqual(CONSUMED);
    const refused = claimAt(now, { subjectHash });
    expect(await store.consume(refused)).toEqual(UNAVAILABLE.quota);
    // Denied is not consumed: under a subject that has room, the same identifier is new.
    expect(await store.consume({ ...refused, subjectHash: randomIdentifier() })).toEqual(CONSUMED);
  });

  it('is not ready and refuses once it is closed', async () => {
    const { store, nowSeconds } = await create();
    await store.close();
    await store.close();
    expect(store.health()).toMatchObject({ ready: false });
    expect(await store.consume(claimAt(nowSeconds()))).toEqual(UNAVAILABLE.store);
  });
}
