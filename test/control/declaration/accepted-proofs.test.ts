/** Declarations of routes with `accepted_proofs`, on both databases: they round-trip, and fail as the operations of the API do. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ProofFormat } from '../../../src/protocol/proof-format.ts';
import {
  type Declaration,
  DeclarationFixture,
  databaseServers,
  declared,
  SITE_ID,
  stepsOf,
} from './declaration-fixture.ts';

const EITHER = ['transcript-v1', 'http-message-signatures'] as const;
const [FIRST] = declared().routes ?? [];
const ROUTE = FIRST?.route_id ?? '';

const accepting = (...formats: ProofFormat[]): Declaration =>
  declared(({ routes = [] }) => {
    Object.assign(routes[0] ?? {}, { accepted_proofs: formats });
  });

describe.each(databaseServers())('$name', (server) => {
  let fixture: DeclarationFixture;
  beforeAll(() => server.start());
  beforeEach(async () => {
    fixture = await DeclarationFixture.open(server);
  });
  afterEach(() => fixture.close());
  afterAll(() => server.stop());

  /** As if verifiers of every target had polled. */
  async function verifiersPoll(lackedAtMs: number | null): Promise<void> {
    const { ms, store } = fixture.api;
    await store.writeUnaudited(undefined, async (tx) => {
      for (const { id } of await tx.targets.attached(SITE_ID)) {
        await tx.targets.note(id, { lastSeenAtMs: ms, acceptedProofsLackedAtMs: lackedAtMs });
      }
    });
  }

  const routeIn = (content: unknown) => {
    const { routes } = content as { readonly routes: readonly { readonly route_id: string }[] };
    return routes.find(({ route_id: id }) => id === ROUTE);
  };

  it('a new site has the formats, its declaration then has nothing to do, and one without them removes them', async () => {
    const site = accepting(...EITHER);
    await fixture.put(site);
    await fixture.settled();
    const again = await fixture.compare(site);
    expect([stepsOf(again), again.json.warnings]).toEqual([[], []]);
    const answer = await fixture.apply(declared());
    expect(answer.json.steps).toMatchObject([
      {
        verb: 'change',
        kind: 'route',
        name: ROUTE,
        changes: ['accepted_proofs: ["transcript-v1","http-message-signatures"] -> (none)'],
      },
    ]);
    expect(stepsOf(await fixture.compare(declared()))).toEqual([]);
  });

  it('a dry run shows what would be published, and reports old targets as the run does', async () => {
    await fixture.put(declared());
    await fixture.settled();
    const site = accepting(...EITHER);
    const refused = async () => [
      (await fixture.compare(site)).code,
      (await fixture.put(site, '', { ifMatch: (await fixture.compare(declared())).etag })).code,
    ];
    expect(await refused()).toEqual(['target_too_old', 'target_too_old']);
    await verifiersPoll(fixture.api.ms);
    expect(await refused()).toEqual(['target_too_old', 'target_too_old']);
    await verifiersPoll(null);
    const { json } = await fixture.compare(site, '&contents=true');
    expect(routeIn((json.contents as { readonly after: unknown }).after)).toMatchObject({
      accepted_proofs: EITHER,
    });
    expect(stepsOf(await fixture.apply(site))).toHaveLength(1);
    // What an older verifier withholds is withheld in the preview, too.
    await verifiersPoll(fixture.api.ms);
    const withheld = await fixture.compare(site, '&contents=true');
    expect(stepsOf(withheld)).toEqual([]);
    const { before } = withheld.json.contents as { readonly before: unknown };
    expect(routeIn(before)).not.toHaveProperty('accepted_proofs');
  });

  it('what DPoP proofs do not cover is warned of, and must be listed', async () => {
    const unlisted = accepting('transcript-v1', 'dpop');
    expect((await fixture.compare(unlisted)).code).toBe('definition_invalid');
    const listed = accepting('transcript-v1', 'dpop');
    Object.assign(listed.routes?.[0] ?? {}, { unbound: ['route', 'site', 'query'] });
    const { json } = await fixture.compare(listed);
    expect(json.warnings).toMatchObject([
      { code: 'dpop_unbound', message: expect.stringContaining('route, site, query') },
    ]);
  });

  it('source rules that only callers with a passport satisfy are warned of, without transcripts', async () => {
    const { json } = await fixture.compare(accepting('http-message-signatures'));
    expect(json.warnings).toMatchObject([]);
  });
});
