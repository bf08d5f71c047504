/** Measures a thousand targets that follow one Control: from the answer to a change until every target has acknowledged it. */
import { SteadyEnrollments } from './enroll-steadily.ts';
import { MeasuredSite } from './measured-site.ts';

export const MANY_TARGETS = 1000;
/** Half of them new keys, half revocations. */
export const CHANGES = 20;
/** Longest that the slowest change may take, milliseconds. */
export const MOST_SPREAD_MS = 5000;
const KEYS = 1000;

/** @returns milliseconds of each change */
export async function measureManyTargets(): Promise<readonly number[]> {
  const site = await MeasuredSite.open({ keys: KEYS, targets: MANY_TARGETS });
  const timesMs: number[] = [];
  try {
    for (let change = 0; change < CHANGES; change += 2) timesMs.push(...(await enrollAndRevoke(site)));
    site.targets.takeBytesPerTarget();
    return timesMs;
  } finally {
    await site.close();
  }
}

async function enrollAndRevoke(site: MeasuredSite): Promise<readonly number[]> {
  const { spread } = site.targets;
  const [issued] = await new SteadyEnrollments(site, 1).run(1);
  if (issued === undefined) throw new Error('no key');
  const { keyId, answeredMs } = issued;
  const listedMs = (await spread.everywhereAt(keyId, 'active')) - answeredMs;
  await site.api.act(`/v1/derived-keys/${keyId}/revoke`, { body: {} });
  const revokedAtMs = performance.now();
  return [listedMs, (await spread.everywhereAt(keyId, 'revoked')) - revokedAtMs];
}
