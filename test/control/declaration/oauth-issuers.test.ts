/** Declarations of OAuth issuers, on both databases: they round-trip, and keep the keys that Control fetched. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newSigningKey } from '../../support/fixtures/bundle-content.ts';
import {
  type Declaration,
  DeclarationFixture,
  databaseServers,
  declared,
  SITE_ID,
  stepsOf,
} from './declaration-fixture.ts';

const ISSUER = 'https://login.shop.example/realms/shop';
const { algorithm: alg, jwk } = newSigningKey().publicKey;
const KEYS = [{ kid: 'key-1', alg, jwk }];

const declaring = (members: object = {}, issuer = ISSUER): Declaration =>
  declared((site) => {
    site.oauth_issuers = [{ issuer, trust_domain: 'login.example', ...members }];
  });

describe.each(databaseServers())('$name', (server) => {
  let fixture: DeclarationFixture;
  beforeAll(() => server.start());
  beforeEach(async () => {
    fixture = await DeclarationFixture.open(server);
  });
  afterEach(() => fixture.close());
  afterAll(() => server.stop());

  async function fetched(): Promise<void> {
    await fixture.api.store.writeUnaudited(undefined, async (tx) => {
      const set = { keys: JSON.stringify(KEYS), fetchedAtMs: fixture.api.ms };
      await tx.oauthIssuers.noteFetch({ siteId: SITE_ID, issuer: ISSUER }, set);
      for (const { id } of await tx.targets.attached(SITE_ID)) {
        await tx.targets.note(id, { lastSeenAtMs: fixture.api.ms, acceptedProofsLackedAtMs: null });
      }
    });
  }

  /** `oauth_issuers` of bundles after the declaration; undefined: as before. */
  async function previewed(declaration: Declaration, member: 'before' | 'after'): Promise<unknown> {
    const { json } = await fixture.compare(declaration, '&contents=true&prune=true');
    return (json.contents as Record<typeof member, { readonly oauth_issuers?: unknown }>)[member]
      .oauth_issuers;
  }

  it('are created, changed with the keys that are there, and removed with prune', async () => {
    await fixture.put(declaring());
    await fixture.settled();
    expect(stepsOf(await fixture.compare(declaring()))).toEqual([]);
    await fetched();
    const entry = { issuer: ISSUER, trust_domain: 'login.example', keys: KEYS };
    expect(await previewed(declaring(), 'before')).toEqual([entry]);
    const shorter = declaring({ max_token_ttl_seconds: 60 });
    expect(await previewed(shorter, 'after')).toEqual([{ ...entry, max_token_ttl_seconds: 60 }]);
    const { json } = await fixture.apply(shorter);
    expect(json.steps).toMatchObject([
      {
        ...{ verb: 'change', kind: 'oauth_issuer', name: ISSUER, permission: 'administer' },
        changes: ['max_token_ttl_seconds: (none) -> 60'],
      },
    ]);
    expect(await previewed(shorter, 'before')).toEqual([{ ...entry, max_token_ttl_seconds: 60 }]);
    const kept = await fixture.compare(declared());
    expect([stepsOf(kept), kept.json.unnamed]).toEqual([[], [{ kind: 'oauth_issuer', name: ISSUER }]]);
    expect(stepsOf(await fixture.apply(declared(), 'prune=true'))).toEqual([`remove oauth_issuer ${ISSUER}`]);
    expect(stepsOf(await fixture.compare(declared(), '&prune=true'))).toEqual([]);
  });

  it('a dry run finds what the run would', async () => {
    const { issuer_url: own } = declared().site;
    for (const faulty of [
      declaring({}, own),
      declaring({}, 'http://login.shop.example'),
      declaring({ jwks_url: 'https://login.shop.example/keys#x' }),
      declaring({ subject_claim: 'client_id' }),
    ]) {
      expect((await fixture.compare(faulty)).code).toBe('definition_invalid');
    }
    const twice = declaring();
    twice.oauth_issuers?.push({ issuer: ISSUER, trust_domain: 'other.example' });
    expect((await fixture.compare(twice)).code).toBe('request_malformed');
    await fixture.put(declared());
    await fixture.settled();
    expect((await fixture.compare(declaring())).code).toBe('target_too_old');
  });
});
