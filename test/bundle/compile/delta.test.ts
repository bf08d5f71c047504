/** Tests what a delta does to a key table, and that a rejected one changes nothing. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { LiveSnapshot } from '../../../src/bundle/compile/compile.ts';
import type {
  BundleContent,
  ClientContent,
  DeltaContent,
  DerivedKeyContent,
} from '../../../src/bundle/format/schema.ts';
import type { PublicJwk } from '../../../src/protocol/public-key.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import {
  applied,
  clientNamed,
  compiled,
  deltaAfter,
  keyNamed,
  tableOf,
} from '../../support/bundle/deltas.ts';
import { codeAndPath } from '../../support/bundle/rejection.ts';
import {
  BROKER_ISSUER,
  bundleContent,
  NOW_SECONDS,
  newSigningKey,
  newTestKeys,
} from '../../support/fixtures/bundle-content.ts';

const keys = newTestKeys();
const jwks = Array.from({ length: 4 }, () => newSigningKey().publicKey.jwk);
const [jwk, otherJwk] = jwks as [PublicJwk, PublicJwk];
const start = () => compiled(bundleContent(keys), keys.bundle);
const apply = (snapshot: LiveSnapshot, more: Partial<DeltaContent>) =>
  applied(snapshot, deltaAfter(snapshot, more), keys.bundle);
const billing = bundleContent(keys).clients?.[0] ?? clientNamed('billing');

describe('a delta', () => {
  it('puts keys and clients, removes keys and clients', async () => {
    const first = await start();
    const second = await apply(first, {
      clients_put: [clientNamed('reporting')],
      keys_put: [keyNamed('dk_1', 'reporting', jwk), keyNamed('dk_2', 'billing', otherJwk)],
    });
    expect(second.keys.get('dk_1')).toMatchObject({ client: { clientId: 'reporting' }, status: 'active' });
    expect(second.keys.size).toBe(4);
    const third = await apply(second, { clients_removed: ['reporting'], keys_removed: ['dk_1'] });
    expect(third.keys.get('dk_1')).toBeUndefined();
    expect(third.keys.client('reporting')).toBeUndefined();
    expect(third.keys.size).toBe(3);
    expect([first.revision, second.revision, third.revision]).toEqual([1, 2, 3]);
  });

  it('moves the position and the times, and leaves routes and the rest alone', async () => {
    const first = await start();
    const content = deltaAfter(first, { revision: 9, issued_at: formatTime(NOW_SECONDS + 7) });
    const second = await applied({ ...first, freshAsOfSeconds: NOW_SECONDS + 50 }, content, keys.bundle);
    // A statement about the previous revision does not apply to this one.
    expect(second).toEqual({
      ...first,
      revision: 9,
      head: second.head,
      issuedAtSeconds: NOW_SECONDS + 7,
      freshAsOfSeconds: NOW_SECONDS + 7,
    });
    expect(second.head).not.toBe(first.head);
    expect(second.routes).toBe(first.routes);
  });

  it('revokes a key without checking it again, and changes a client for all its keys at once', async () => {
    const first = await start();
    const before = first.keys.get('dk_billing');
    const revoked = await apply(first, {
      keys_put: [keyNamed('dk_billing', 'billing', keys.derived.publicKey.jwk, { status: 'revoked' })],
    });
    expect(revoked.keys.get('dk_billing')).toMatchObject({ status: 'revoked' });
    expect(revoked.keys.get('dk_billing')?.key).toBe(before?.key);
    // A reader that has already looked the key up keeps its value.
    expect(before).toMatchObject({ status: 'active' });
    const regranted = await apply(revoked, {
      clients_put: [{ ...billing, grants: [{ resource: 'refunds', access: 'read' }] }],
    });
    expect(regranted.keys.get('dk_billing')).toMatchObject({
      client: { grants: new Map([['refunds', 'read']]) },
    });
  });

  it('removes a client with the keys that had lapsed when it was made', async () => {
    const lapsing = keyNamed('dk_1', 'reporting', jwk, { expires_at: formatTime(NOW_SECONDS) });
    const second = await apply(await start(), {
      clients_put: [clientNamed('reporting')],
      keys_put: [lapsing],
    });
    const third = await apply(second, { clients_removed: ['reporting'] });
    expect([third.keys.get('dk_1'), third.keys.client('reporting')]).toEqual([undefined, undefined]);
    expect(third.keys.size).toBe(2);
  });

  it('may move a key to another client, and remove the one that it was of', async () => {
    const second = await apply(await start(), {
      clients_put: [clientNamed('reporting')],
      keys_put: [keyNamed('dk_billing', 'reporting', keys.derived.publicKey.jwk)],
      clients_removed: ['billing'],
    });
    expect(second.keys.get('dk_billing')).toMatchObject({ client: { clientId: 'reporting' } });
    expect(second.keys.client('billing')).toBeUndefined();
  });

  it('may remove keys that are not there: they may have lapsed here first', async () => {
    const first = await start();
    expect((await apply(first, { keys_removed: ['dk_gone'] })).keys.size).toBe(2);
  });
});

const smallOrder: PublicJwk = { kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32).toString('base64url') };
const good = keyNamed('dk_1', 'billing', jwk);

describe('a delta is refused whole', () => {
  it.each<[what: string, more: Partial<DeltaContent>, expected: string]>([
    [
      'key of no client',
      { keys_put: [good, keyNamed('dk_2', 'x', jwk)] },
      'client_unknown /keys_put/1/client_id',
    ],
    [
      'key of a client that it removes',
      { keys_put: [good], keys_removed: ['dk_billing'], clients_removed: ['billing'] },
      'client_unknown /keys_put/0/client_id',
    ],
    [
      'key by the name of a broker’s',
      { keys_put: [good, keyNamed('broker-1', 'billing', jwk)] },
      'duplicate /keys_put/1/key_id',
    ],
    ['key twice', { keys_put: [good, good] }, 'duplicate /keys_put/1/key_id'],
    ['key put and removed', { keys_put: [good], keys_removed: ['dk_1'] }, 'duplicate /keys_put/0/key_id'],
    ['key removed twice', { keys_removed: ['dk_billing', 'dk_billing'] }, 'duplicate /keys_removed/1'],
    ['broker’s key removed', { keys_removed: ['dk_billing', 'broker-1'] }, 'value_invalid /keys_removed/1'],
    [
      'point of small order',
      { keys_put: [good, keyNamed('dk_2', 'billing', smallOrder)] },
      'key_refused /keys_put/1/jwk',
    ],
    [
      'no such moment',
      { keys_put: [keyNamed('dk_2', 'billing', jwk, { expires_at: '2026-02-30T00:00:00Z' })] },
      'time_invalid /keys_put/0/expires_at',
    ],
    [
      'client removed with keys left',
      { keys_put: [good], clients_removed: ['billing'] },
      'client_unknown /keys_put/0/client_id',
    ],
    ['client removed, its key stays', { clients_removed: ['billing'] }, 'client_in_use /clients_removed/0'],
    [
      'unknown client removed',
      { keys_put: [good], clients_removed: ['x'] },
      'client_unknown /clients_removed/0',
    ],
    [
      'client removed twice',
      { keys_removed: ['dk_billing'], clients_removed: ['billing', 'billing'] },
      'duplicate /clients_removed/1',
    ],
    [
      'client put and removed',
      { keys_removed: ['dk_billing'], clients_put: [billing], clients_removed: ['billing'] },
      'duplicate /clients_removed/0',
    ],
    ['client put twice', { clients_put: [billing, billing] }, 'duplicate /clients_put/1/client_id'],
    [
      'client with a broker’s issuer',
      { keys_put: [good], clients_put: [clientNamed('x', { issuer: BROKER_ISSUER })] },
      'issuer_of_client /clients_put/0/issuer',
    ],
    [
      'subject outside its trust domain',
      { clients_put: [clientNamed('x', { subject: 'spiffe://elsewhere.example/x' })] },
      'subject_outside_trust_domain /clients_put/0/subject',
    ],
    [
      'grant twice',
      { clients_put: [{ ...billing, grants: [...billing.grants, ...billing.grants] }] },
      'duplicate /clients_put/0/grants/1/resource',
    ],
  ])('%s', async (_what, more, expected) => {
    const snapshot = await start();
    const names: [string[], string[]] = [
      ['dk_billing', 'dk_1', 'dk_2', 'broker-1'],
      ['billing', 'x'],
    ];
    const before = tableOf(snapshot, ...names);
    expect(await codeAndPath(() => apply(snapshot, more))).toBe(expected);
    expect(tableOf(snapshot, ...names)).toEqual(before);
  });

  it('with all its faults together', async () => {
    const snapshot = await start();
    const more = { keys_put: [keyNamed('dk_1', 'x', smallOrder)], clients_removed: ['y'] };
    await expect(apply(snapshot, more)).rejects.toMatchObject({
      faults: [{ code: 'client_unknown' }, { code: 'key_refused' }, { code: 'client_unknown' }],
    });
  });
});

/** The state of a site and its possible changes. */
const KEY_IDS = ['k0', 'k1', 'k2', 'k3', 'k4'];
const CLIENT_IDS = ['c0', 'c1', 'c2'];

interface SiteState {
  readonly clients: ReadonlyMap<string, ClientContent>;
  readonly keys: ReadonlyMap<string, DerivedKeyContent>;
}

interface Wish {
  readonly clients: readonly ('keep' | 'read' | 'write' | 'remove')[];
  readonly keys: readonly { readonly to: number; readonly jwk: number; readonly revoked: boolean }[];
}

const wish: fc.Arbitrary<Wish> = fc.record({
  clients: fc.array(fc.constantFrom('keep', 'read', 'write', 'remove'), { minLength: 3, maxLength: 3 }),
  keys: fc.array(
    // `to` of no client: the key is removed. `to` beyond the clients: it stays unchanged.
    fc.record({
      to: fc.integer({ min: -1, max: 5 }),
      jwk: fc.integer({ min: 0, max: 3 }),
      revoked: fc.boolean(),
    }),
    { minLength: 5, maxLength: 5 },
  ),
});

/** The delta that brings a wish about as far as the rules allow, and the state after it. */
function fulfil(state: SiteState, { clients: clientWishes, keys: keyWishes }: Wish) {
  const clients = new Map(state.clients);
  const clientsPut: ClientContent[] = [];
  const clientsRemoved: string[] = [];
  CLIENT_IDS.forEach((id, index) => {
    const what = clientWishes[index] ?? 'keep';
    if (what === 'keep') return;
    if (what === 'remove') {
      if (clients.delete(id)) clientsRemoved.push(id);
      return;
    }
    const client = clientNamed(id, { grants: [{ resource: 'orders', access: what }] });
    clients.set(id, client);
    clientsPut.push(client);
  });
  const after = new Map(state.keys);
  const keysPut: DerivedKeyContent[] = [];
  const keysRemoved: string[] = [];
  KEY_IDS.forEach((id, index) => {
    const { to = -1, jwk: number = 0, revoked = false } = keyWishes[index] ?? {};
    const clientId = CLIENT_IDS[to];
    const orphaned = !clients.has(after.get(id)?.client_id ?? '');
    if (clientId !== undefined && clients.has(clientId)) {
      const key = keyNamed(id, clientId, jwks[number] ?? jwk, { status: revoked ? 'revoked' : 'active' });
      after.set(id, key);
      keysPut.push(key);
    } else if ((to === -1 || orphaned) && after.delete(id)) keysRemoved.push(id);
  });
  const delta = {
    clients_put: clientsPut,
    clients_removed: clientsRemoved,
    keys_put: keysPut,
    keys_removed: keysRemoved,
  };
  return { delta, state: { clients, keys: after } };
}

it('deltas one after another come to what compiling the resulting content comes to', async () => {
  const { derived_keys: _, clients: __, ...rest } = bundleContent(keys);
  const contentOf = ({ clients, keys: derived }: SiteState): BundleContent => ({
    ...rest,
    clients: [...clients.values()],
    derived_keys: [...derived.values()],
  });
  await fc.assert(
    fc.asyncProperty(fc.array(wish, { minLength: 1, maxLength: 12 }), async (wishes) => {
      let state: SiteState = { clients: new Map(), keys: new Map() };
      let snapshot = await compiled(contentOf(state), keys.bundle);
      for (const each of wishes) {
        const next = fulfil(state, each);
        snapshot = await apply(snapshot, next.delta);
        state = next.state;
        const whole = await compiled(contentOf(state), keys.bundle);
        expect(tableOf(snapshot, [...KEY_IDS, 'broker-1'], CLIENT_IDS)).toEqual(
          tableOf(whole, [...KEY_IDS, 'broker-1'], CLIENT_IDS),
        );
      }
    }),
    { numRuns: 60 },
  );
});
