/** Callers with SVIDs: choice, rotation, the three proofs, and whom they take for the broker. */
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseBrokerUrl } from '../../../src/caller/broker/broker-url.ts';
import { withBroker } from '../../../src/caller/broker/passport-set.ts';
import type { SvidSourceOptions } from '../../../src/caller/broker/svid-source.ts';
import { SvidSource } from '../../../src/caller/broker/svid-source.ts';
import { parsePassport } from '../../../src/protocol/passport.ts';
import { WorkloadApiError } from '../../../src/spiffe/workload-api/workload-api.ts';
import type {
  WorkloadX509Svid,
  X509SvidUpdate,
  X509SvidWatch,
} from '../../../src/spiffe/workload-api/x509-svids.ts';
import { FakeBroker } from '../../support/fakes/broker.ts';
import { bundlesOf, type CertificateContent, SpiffeAuthority } from '../../support/fakes/spiffe-authority.ts';

const AUDIENCE = 'https://api.shop.example';
const STOP = new AbortController().signal;
const shop = SpiffeAuthority.create('shop.example');
const elsewhere = SpiffeAuthority.create('elsewhere.example');
const ended: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

function svid(path: string, content: CertificateContent = {}, hint?: string): WorkloadX509Svid {
  const { chainDer, privateKey } = shop.issueSvid(path, content);
  const spiffeId = `spiffe://shop.example${path}`;
  const notAfterMs = content.notAfterMs ?? Date.now() + 3_600_000;
  return { spiffeId, trustDomain: 'shop.example', hint, chainDer, privateKey, notAfterMs };
}

function update(...svids: readonly WorkloadX509Svid[]): X509SvidUpdate {
  const known = bundlesOf(shop, elsewhere);
  const bundles = ['shop.example', 'elsewhere.example'].flatMap((domain) => known.bundleOf(domain) ?? []);
  return { svids, bundles };
}

/** A Workload API in this process. */
class Agent {
  handlers: X509SvidWatch | undefined;
  readonly audiences: string[] = [];

  source(first: X509SvidUpdate | undefined, options: Partial<SvidSourceOptions> = {}): SvidSource {
    const source = new SvidSource({
      api: {
        watch: async (handlers) => {
          this.handlers = handlers;
          if (first !== undefined) handlers.onUpdate(first);
          await new Promise((resolve) => handlers.signal.addEventListener('abort', resolve));
        },
        jwtSvid: async (audience, spiffeId) => {
          this.audiences.push(audience);
          return shop.issueJwtSvid(spiffeId, audience);
        },
      },
      choice: { spiffeId: undefined, hint: undefined },
      proof: 'mtls',
      brokerSpiffeId: 'spiffe://shop.example/broker',
      readCaPem: async () => undefined,
      nowMs: () => Date.now(),
      ...options,
    });
    ended.push(() => source.close());
    return source;
  }
}

async function startBroker(certificate = shop.issueSvid('/broker')): Promise<FakeBroker> {
  const broker = await FakeBroker.start({ ...certificate.pem });
  ended.push(() => broker.close());
  return broker;
}

async function passportFrom(broker: FakeBroker, source: SvidSource) {
  const identity = await source.current(STOP);
  const call = { url: parseBrokerUrl(broker.url), identity, stop: STOP };
  const { jws } = await withBroker(call, (client) => client.passport(AUDIENCE));
  const claims = parsePassport(jws)?.claims;
  return {
    claims,
    holderKey: identity.prover.holderKey,
    proof: JSON.parse(broker.requests.at(-1)?.body ?? '').proof,
  };
}

function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'none',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  );
}

describe('proofs', () => {
  it.each(['P-256', 'Ed25519'] as const)('mTLS with %s: the SVID key is the holder key', async (key) => {
    const offer = svid('/billing', { key });
    const { claims, holderKey, proof } = await passportFrom(
      await startBroker(),
      new Agent().source(update(offer)),
    );
    expect(proof).toEqual({ kind: 'mtls' });
    expect(claims).toMatchObject({
      subject: 'spiffe://shop.example/billing',
      holderJwk: holderKey.publicKey.jwk,
    });
    expect(holderKey.privateKey).toBe(offer.privateKey);
  });

  it.each(['RSA-2048', 'P-384'] as const)('an SVID of %s signs the form', async (key) => {
    const source = new Agent().source(update(svid('/billing', { key })));
    const { claims, proof, holderKey } = await passportFrom(await startBroker(), source);
    expect(proof.kind).toBe('signed_form');
    expect(claims?.holderJwk).toEqual(holderKey.publicKey.jwk);
  });

  it.each(['P-256', 'Ed25519'] as const)('the signed form of %s has a holder key of its own', async (key) => {
    const offer = svid('/billing', { key });
    const source = new Agent().source(update(offer), { proof: 'signed_form' });
    const { claims, holderKey, proof } = await passportFrom(await startBroker(), source);
    expect(proof.kind).toBe('signed_form');
    expect(holderKey.privateKey).not.toBe(offer.privateKey);
    expect(claims?.holderJwk).toEqual(holderKey.publicKey.jwk);
  });

  it('a JWT-SVID is for this holder key at this broker alone', async () => {
    const agent = new Agent();
    const broker = await startBroker();
    const source = agent.source(update(svid('/billing')), { proof: 'jwt_svid' });
    const { claims, holderKey } = await passportFrom(broker, source);
    expect(agent.audiences).toEqual([`${broker.url}#jkt=${holderKey.publicKey.thumbprint}`]);
    expect(claims?.subject).toBe('spiffe://shop.example/billing');
  });
});

describe('which broker', () => {
  it.each([
    ['another SPIFFE ID', () => shop.issueSvid('/other')],
    ['another trust domain', () => elsewhere.issueSvid('spiffe://shop.example/broker')],
    [
      'two SPIFFE IDs',
      () => shop.issueSvid('/broker', { uris: ['spiffe://shop.example/broker', 'spiffe://shop.example/a'] }),
    ],
    ['a CA', () => shop.issueSvid('/broker', { isCa: true })],
    ['an expired SVID', () => shop.issueSvid('/broker', { notAfterMs: Date.now() - 60_000 })],
  ])('not %s', async (_case, certificate) => {
    const broker = await startBroker(certificate());
    const source = new Agent().source(update(svid('/billing')));
    expect(await codeOf(passportFrom(broker, source))).toBe('unreachable');
    expect(broker.requests).toEqual([]);
  });

  it('not one whose trust domain the Workload API does not know', async () => {
    const source = new Agent().source(update(svid('/billing')), {
      brokerSpiffeId: 'spiffe://nowhere.example/b',
    });
    expect(await codeOf(source.current(STOP))).toBe('broker_trust_domain_unknown');
  });
});

describe('choice', () => {
  const offers = [svid('/billing', {}, 'internal'), svid('/reporting', {}, 'external')];
  it.each([
    [undefined, undefined, 'svid_ambiguous'],
    ['spiffe://shop.example/billing', undefined, '/billing'],
    [undefined, 'external', '/reporting'],
    ['spiffe://shop.example/reporting', 'external', '/reporting'],
    ['spiffe://shop.example/reporting', 'internal', 'svid_not_found'],
    ['spiffe://shop.example/other', undefined, 'svid_not_found'],
    [undefined, 'other', 'svid_not_found'],
  ])('ID %s, hint %s: %s', async (spiffeId, hint, expected) => {
    for (const svids of [offers, offers.toReversed()]) {
      const source = new Agent().source(update(...svids), { choice: { spiffeId, hint } });
      const chosen = await source.current(STOP).then(
        (identity) => identity.svid?.spiffeId.replace('spiffe://shop.example', ''),
        (error) => error.code,
      );
      expect(chosen).toBe(expected);
    }
  });

  it('of two SVIDs of one ID any will do', async () => {
    const source = new Agent().source(update(svid('/billing'), svid('/billing')));
    expect((await source.current(STOP)).svid?.spiffeId).toBe('spiffe://shop.example/billing');
  });
});

describe('over time', () => {
  it('a new SVID is no change where the holder key stays', async () => {
    const agent = new Agent();
    const source = agent.source(update(svid('/billing')), { proof: 'signed_form' });
    const before = (await source.current(STOP)).prover.holderKey;
    let changes = 0;
    source.onChange(() => changes++);
    agent.handlers?.onUpdate(update(svid('/billing', { notAfterMs: Date.now() + 7_200_000 })));
    const after = await source.current(STOP);
    expect([changes, after.prover.holderKey]).toEqual([0, before]);
    expect(after.svid?.expiresAtMs).toBeGreaterThan(Date.now() + 7_000_000);
  });

  it('a new SVID is a change, a bundle alone is none, an ambiguous update neither ends nor hides it', async () => {
    const agent = new Agent();
    const first = svid('/billing');
    const source = agent.source(update(first));
    let changes = 0;
    source.onChange(() => changes++);
    agent.handlers?.onUpdate(update(first));
    expect(changes).toBe(0);
    const second = svid('/billing');
    agent.handlers?.onUpdate(update(second));
    expect(changes).toBe(1);
    const { prover } = await source.current(STOP);
    expect(prover.holderKey.privateKey).toBe(second.privateKey);
    agent.handlers?.onUpdate(update(second, svid('/other')));
    expect(await codeOf(source.current(STOP))).toBe('svid_ambiguous');
    agent.handlers?.onUpdate(update(second));
    expect(await codeOf(source.current(STOP))).toBe('none');
  });

  it('an SVID lives on until its end after the stream failed', async () => {
    const agent = new Agent();
    let nowMs = Date.now();
    const source = agent.source(update(svid('/billing')), { nowMs: () => nowMs });
    agent.handlers?.onError(new WorkloadApiError('workload_api_no_identity', 'no entry'));
    expect(await codeOf(source.current(STOP))).toBe('none');
    nowMs += 3_700_000;
    expect(await codeOf(source.current(STOP))).toBe('svid_expired');
  });

  it('waits for the first SVID, and says why there is none', async () => {
    const agent = new Agent();
    const source = agent.source(undefined);
    const waiting = source.current(STOP);
    agent.handlers?.onError(new WorkloadApiError('workload_api_no_identity', 'no entry yet'));
    agent.handlers?.onUpdate(update(svid('/billing')));
    expect((await waiting).svid?.spiffeId).toBe('spiffe://shop.example/billing');

    const stop = new AbortController();
    const denied = new Agent();
    const never = denied.source(undefined).current(stop.signal);
    denied.handlers?.onError(new WorkloadApiError('workload_api_no_identity', 'no entry'));
    stop.abort();
    expect(await codeOf(never)).toBe('workload_api_no_identity');
  });
});
