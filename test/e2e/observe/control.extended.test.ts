/**
 * Rehearses docs/operate/observe.md "With Control" with the shipped programs: Control, verifiers with and without the flag, and a
 * released verifier that does not know observations.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import { ALLOWED, FollowedSite, type FollowingVerifier } from '../../support/control/followed-site.ts';
import { SITE_ID } from '../../support/control/site-declaration.ts';
import { outcomeOfResponse } from '../../support/harness/check-client.ts';
import { releasesBefore } from '../../support/harness/releases.ts';
import { waitFor } from '../../support/wait.ts';
import { FakeClock } from '../replay/fake-clock.ts';

const ROUTE = 'orders-read';
const OBSERVED = 'observed';
const MISSING = 'invalid_request_proof/authorization_missing 401';
const inSeconds = (seconds: number) => formatTime(Math.floor(Date.now() / 1000) + seconds);

/** What becomes of a request without a proof. */
async function unsignedOutcome(site: FollowedSite, verifier: FollowingVerifier): Promise<string> {
  const response = await verifier.check(site.request());
  const names = (response.ok_response?.headers ?? []).map(({ header }) => header?.key.toLowerCase());
  return names.includes('x-proofgate-observed') ? OBSERVED : outcomeOfResponse(response);
}

const awaitUnsigned = (site: FollowedSite, verifier: FollowingVerifier, expected: string) =>
  waitFor(expected, async () => ((await unsignedOutcome(site, verifier)) === expected ? true : undefined));

/** Declares the route as observed, and applies the site file. */
async function tryObserve(site: FollowedSite, until: string, targets?: readonly string[]) {
  const file = join(site.stage.directory, 'site.yaml');
  const declared = parse(await readFile(file, 'utf8'));
  for (const route of declared.routes) {
    if (route.route_id === ROUTE) Object.assign(route, { enforcement: 'observe', observe_until: until });
  }
  await writeFile(file, JSON.stringify({ ...declared, targets: targets ?? declared.targets }));
  return site.stage.tryCtl('apply', '-f', file, '--token-dir', site.stage.directory);
}

async function observe(site: FollowedSite, until: string, targets?: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await tryObserve(site, until, targets);
  expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
}

async function target(site: FollowedSite, name: string): Promise<JsonObject> {
  const api = await site.stage.api();
  try {
    const [found] = await api.list(`/v1/sites/${SITE_ID}/targets?name=${name}`);
    if (found === undefined) throw new Error(`there is no target ${name}`);
    return found;
  } finally {
    await api.close();
  }
}

const awaitEnforced = (site: FollowedSite, name: string, expected: object | undefined) =>
  waitFor(`what ${name} enforces`, async () => {
    const { enforced_observations: enforced } = await target(site, name);
    return JSON.stringify(enforced) === JSON.stringify(expected) ? true : undefined;
  });

const overview = async (site: FollowedSite) => (await site.stage.ctl('get', 'overview', SITE_ID)).observation;

/** The verifier with the flag, which it gets once the bundle observes. */
async function restartWithFlag(
  site: FollowedSite,
  verifier: FollowingVerifier,
  name: string,
  until: string,
): Promise<FollowingVerifier> {
  // It has loaded the bundle, and says that it enforces.
  await awaitEnforced(site, name, { count: 1, unmatched: false, routes: [ROUTE] });
  await verifier.stop();
  const flags = ['--allow-observe', `${ROUTE}=${until}`];
  const restarted = await site.startVerifier({ program: undefined, target: name, replay: 'memory', flags });
  await awaitUnsigned(site, restarted, OBSERVED);
  return restarted;
}

/** They know no observe mode. */
const olderReleases = releasesBefore('0.4.0');
const newestRelease = olderReleases.at(-1)?.version;

describe.each(olderReleases)('observe with Control, and verifiers of $version', ({ program, version }) => {
  let site: FollowedSite;
  let flagged: FollowingVerifier;
  let enforcing: FollowingVerifier;
  let old: FollowingVerifier;
  let keyFile: string;
  const until = inSeconds(3600);

  beforeAll(async () => {
    site = await FollowedSite.start({ targets: ['flagged', 'enforcing', 'old'] });
    const start = (name: string, release: string | undefined) =>
      site.startVerifier({ program: release, target: name, replay: 'memory' });
    [flagged, enforcing, old] = await Promise.all([
      start('flagged', undefined),
      start('enforcing', undefined),
      start('old', program),
    ]);
    ({ keyFile } = await site.stage.enroll('billing'));
  });
  afterAll(() => site?.stop());

  it('Control refuses it while such a verifier is attached, which goes on', async () => {
    await site.awaitOutcome(old, keyFile, ALLOWED);
    const refused = await tryObserve(site, until);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain('target_too_old');
    expect(refused.stderr).toMatch(/: old;/);
    expect(await overview(site)).toBeUndefined();
    await site.awaitOutcome(old, keyFile, ALLOWED);
    expect(await unsignedOutcome(site, flagged)).toBe(MISSING);
  });

  // What follows is for a verifier that is too old, whichever it is.
  if (version !== newestRelease) return;

  it('is observed where the flag allows it, and enforced elsewhere, which Control shows', async () => {
    await site.stage.ctl('detach', String((await target(site, 'old')).target_id));
    await old.stop();
    await observe(site, until, ['flagged', 'enforcing']);
    flagged = await restartWithFlag(site, flagged, 'flagged', until);
    await awaitEnforced(site, 'flagged', undefined);
    await awaitEnforced(site, 'enforcing', { count: 1, unmatched: false, routes: [ROUTE] });
    expect(await unsignedOutcome(site, enforcing)).toBe(MISSING);
    const shown = (await site.stage.list('targets')).map(({ enforced_observations: enforced, name }) => [
      name,
      enforced,
    ]);
    expect(shown).toContainEqual(['enforcing', { count: 1, unmatched: false, routes: [ROUTE] }]);
    for (const verifier of [flagged, enforcing]) await site.awaitOutcome(verifier, keyFile, ALLOWED);
    expect(await overview(site)).toMatchObject({ routes: 1, unmatched: false });
    const { definition } = await site.stage.ctl('get', 'route', ROUTE, '--site', SITE_ID);
    expect(definition).toMatchObject({ enforcement: 'observe', observe_until: until });
  });

  it('is enforced everywhere once such a verifier joins, for which the site stays open', async () => {
    await observe(site, until, ['flagged', 'enforcing', 'late']);
    expect(await unsignedOutcome(site, flagged)).toBe(OBSERVED);
    const late = await site.startVerifier({ program, target: 'late', replay: 'memory' });
    await site.awaitOutcome(late, keyFile, ALLOWED);
    await awaitUnsigned(site, flagged, MISSING);
    for (const verifier of [flagged, enforcing]) await site.awaitOutcome(verifier, keyFile, ALLOWED);
    expect(await overview(site)).toMatchObject({ routes: 1, withheld_for: [{ name: 'late' }] });
    const { targets } = await site.stage.ctl('get', 'propagation', SITE_ID);
    const states = Array.isArray(targets) ? targets.filter(isJsonObject) : [];
    expect(states.filter(({ refused }) => refused !== undefined)).toEqual([]);
    expect(await tryObserve(site, inSeconds(7200))).toMatchObject({
      stderr: expect.stringContaining('target_too_old'),
    });
  });
});

it.each(olderReleases)(
  'a Control of $version ignores what a verifier says that it enforces',
  async ({ program }) => {
    const site = await FollowedSite.start({ controlRelease: program, targets: ['gateway'] });
    try {
      const token = (await readFile(join(site.stage.directory, 'gateway.token'), 'utf8')).trim();
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'proofgate-bundle-members': 'blocked,enforcement,passport_header',
        'proofgate-enforced-observations': `1 route=${ROUTE}`,
      };
      const self = `${site.stage.controlUrl}/v1/targets/self`;
      const polled = await waitFor('a bundle', async () => {
        const answer = await fetch(`${self}/bundle`, { headers });
        return answer.status === 200 ? answer : undefined;
      });
      const { head, revision } = parseStrictJson(await polled.text()) as JsonObject;
      const body = JSON.stringify({ revision, head, outcome: 'accepted' });
      expect((await fetch(`${self}/acks`, { method: 'POST', headers, body })).status).toBe(204);
    } finally {
      await site.stop();
    }
  },
);

describe('the end of an observation is by the clock of the verifier', () => {
  const CONTROL_BEHIND_SECONDS = 300;
  const LASTS_SECONDS = 45;
  let clock: FakeClock;
  let site: FollowedSite;
  let verifier: FollowingVerifier;

  beforeAll(async () => {
    clock = await FakeClock.create();
    site = await FollowedSite.start({ env: clock.env, targets: ['gateway'] });
    verifier = await site.startVerifier({ program: undefined, target: 'gateway', replay: 'memory' });
    await clock.put(-CONTROL_BEHIND_SECONDS);
  });
  afterAll(async () => {
    await site?.stop();
    await clock?.remove();
  });

  /** The end of an observation that the verifier has begun. */
  async function begin(): Promise<number> {
    const until = inSeconds(LASTS_SECONDS);
    await observe(site, until);
    verifier = await restartWithFlag(site, verifier, 'gateway', until);
    expect(Date.now()).toBeLessThan(Date.parse(until));
    return Date.parse(until);
  }

  it('with a Control whose clock is behind', async () => {
    const untilMs = await begin();
    await awaitUnsigned(site, verifier, MISSING);
    expect(Date.now()).toBeGreaterThanOrEqual(untilMs);
    // Control still believes that it lasts.
    expect(await overview(site)).toMatchObject({ routes: 1 });
    expect(await unsignedOutcome(site, verifier)).toBe(MISSING);
  });

  it('with a Control that is down', async () => {
    const untilMs = await begin();
    await site.stage.stopControl();
    expect(await unsignedOutcome(site, verifier)).toBe(OBSERVED);
    await awaitUnsigned(site, verifier, MISSING);
    expect(Date.now()).toBeGreaterThanOrEqual(untilMs);
    await site.stage.startControl();
    expect(await overview(site)).toMatchObject({ routes: 1 });
    expect(await unsignedOutcome(site, verifier)).toBe(MISSING);
  });
});
