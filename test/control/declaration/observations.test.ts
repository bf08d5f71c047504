/** Declarations of observations, on both databases: they round-trip, and fail as the operations of the API do. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import {
  type Declaration,
  DeclarationFixture,
  databaseServers,
  declared,
  SITE_ID,
  stepsOf,
} from './declaration-fixture.ts';

const DAY = 86_400;

describe.each(databaseServers())('$name', (server) => {
  let fixture: DeclarationFixture;
  beforeAll(() => server.start());
  beforeEach(async () => {
    fixture = await DeclarationFixture.open(server);
  });
  afterEach(() => fixture.close());
  afterAll(() => server.stop());

  const inSeconds = (seconds: number) => formatTime(Math.floor(fixture.api.ms / 1000) + seconds);
  const observed = (seconds: number): Declaration =>
    declared(({ routes = [], site }) => {
      Object.assign(site, { unmatched: 'observe', unmatched_until: inSeconds(seconds) });
      Object.assign(routes[0] ?? {}, { enforcement: 'observe', observe_until: inSeconds(seconds) });
    });
  const [FIRST] = declared().routes ?? [];
  const ROUTE = FIRST?.route_id ?? '';

  /** As if current verifiers of every target had polled. */
  async function verifiersPoll(): Promise<void> {
    const { ms, store } = fixture.api;
    await store.writeUnaudited(undefined, async (tx) => {
      for (const { id } of await tx.targets.attached(SITE_ID)) {
        await tx.targets.note(id, { lastSeenAtMs: ms });
      }
    });
  }

  /** @returns the steps with what they change */
  async function apply(site: Declaration): Promise<unknown> {
    const answer = await fixture.apply(site);
    expect(answer.status).toBe(200);
    return answer.json.steps;
  }

  it('a new site is observed from the beginning, and its declaration then has nothing to do', async () => {
    const site = observed(DAY);
    await fixture.put(site);
    await fixture.settled();
    const again = await fixture.compare(site);
    expect(stepsOf(again)).toEqual([]);
    expect(again.json.warnings).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ code: 'route_observed', message: expect.stringContaining(ROUTE) }),
        expect.objectContaining({ code: 'unmatched_observed' }),
      ]),
    );
    // Also when it has ended.
    fixture.api.ms += 2 * DAY * 1000;
    expect(stepsOf(await fixture.compare(site))).toEqual([]);
  });

  it('a declaration without the members ends the observations', async () => {
    await fixture.put(observed(DAY));
    await fixture.settled();
    const until = `"${inSeconds(DAY)}" -> (none)`;
    expect(await apply(declared())).toMatchObject([
      {
        verb: 'change',
        kind: 'site',
        changes: ['unmatched: "observe" -> "deny"', `unmatched_until: ${until}`],
      },
      {
        verb: 'change',
        kind: 'route',
        name: ROUTE,
        changes: ['enforcement: "observe" -> (none)', `observe_until: ${until}`],
      },
    ]);
    expect(stepsOf(await fixture.compare(declared()))).toEqual([]);
  });

  it('a dry run shows what would be published, and reports faulty ends and old targets', async () => {
    await fixture.put(declared());
    await fixture.settled();
    const refused = async (site: Declaration) => [
      (await fixture.compare(site)).code,
      (await fixture.put(site, '', { ifMatch: (await fixture.compare(declared())).etag })).code,
    ];
    expect(await refused(observed(DAY))).toEqual(['target_too_old', 'target_too_old']);
    await verifiersPoll();
    expect(await refused(observed(-1))).toEqual(['definition_invalid', 'definition_invalid']);
    expect(await refused(observed(31 * DAY))).toEqual(['definition_invalid', 'definition_invalid']);
    const { json } = await fixture.compare(observed(DAY), '&contents=true');
    expect(json.contents).toMatchObject({
      after: {
        unmatched: 'observe',
        unmatched_until: inSeconds(DAY),
        routes: expect.arrayContaining([
          expect.objectContaining({ route_id: ROUTE, enforcement: 'observe', observe_until: inSeconds(DAY) }),
        ]),
      },
    });
    expect(await apply(observed(DAY))).toMatchObject([{ kind: 'site' }, { kind: 'route', name: ROUTE }]);
  });
});
