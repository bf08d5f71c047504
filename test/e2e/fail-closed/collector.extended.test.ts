/**
 * Tests a verifier that sends its audit events to a collector: the event of each answer arrives, also after the collector was
 * away. A stalled collector delays neither a request nor the end of the process.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { headerValues } from '../../../src/tools/conformance/wire/exchange.ts';
import { startAuditCollector } from '../../support/fakes/audit-collector.ts';
import { waitFor } from '../../support/wait.ts';
import { CAMPAIGN_TIMEOUT_MS, type Campaign } from './campaign.ts';
import { useFailClosedFixture } from './fail-closed-fixture.ts';
import { readTrailOf } from './trail-of.ts';

const fixture = useFailClosedFixture();
const REQUESTS = 100;

async function begin(flags: readonly string[]) {
  const collector = await startAuditCollector();
  fixture.onEnd(collector.stop);
  const tokenFile = join(fixture.site.directory, 'collector-token');
  await writeFile(tokenFile, 'first-token\n');
  const { campaign, verifier } = await fixture.begin({
    requests: REQUESTS,
    flags: [
      '--audit-url',
      collector.url,
      '--audit-token-file',
      tokenFile,
      '--redis-timeout',
      '400ms',
      ...flags,
    ],
  });
  const collected = () => readTrailOf(collector.taken.map(({ text }) => text).join(''));
  return { campaign, collected, collector, tokenFile, verifier };
}

function forwardedIds(campaign: Campaign): readonly string[] {
  return campaign.gateways
    .flatMap(({ upstream }) => upstream.requests)
    .flatMap(({ headers }) => headerValues(headers, 'x-proofgate-decision-id'));
}

it.each([[[]], [['--audit-gzip']]])(
  'gets every event beside the file (%j)',
  async (flags) => {
    const { campaign, collected, collector, tokenFile, verifier } = await begin(flags);
    await campaign.send(REQUESTS);
    await waitFor('the first batch', () => (collector.taken.length > 0 ? true : undefined));
    collector.behave({ status: 401 });
    await writeFile(tokenFile, 'second-token\n');
    await campaign.send(REQUESTS);
    await waitFor('a refused batch', () =>
      collector.received.length > collector.taken.length ? true : undefined,
    );
    // Its readiness does not depend on the collector.
    const { status, text } = await verifier.probe('/readyz');
    expect([status, JSON.parse(text).checks]).toEqual([
      200,
      expect.arrayContaining([
        {
          name: 'audit',
          ok: true,
          warning: expect.stringMatching(/^decisions cannot be sent to the collector \(http_401\): /),
        },
      ]),
    ]);
    collector.behave(({ headers }) => ({
      status: headers.authorization === 'Bearer second-token' ? 204 : 401,
    }));
    await campaign.send(REQUESTS);
    await verifier.stop();
    const { allowed, decisions, lost, torn } = collected();
    const events = await verifier.auditEvents();
    expect([torn, lost, decisions]).toEqual([[], 0, events.length]);
    expect(events.length).toBeGreaterThanOrEqual(3 * REQUESTS);
    expect(forwardedIds(campaign).filter((id) => !allowed.has(id))).toEqual([]);
    campaign.reckon();
  },
  CAMPAIGN_TIMEOUT_MS,
);

it(
  'is not waited for when it is silent',
  async () => {
    const { campaign, collector, verifier } = await begin([]);
    collector.behave('silence');
    await campaign.send(REQUESTS);
    const { text } = await verifier.probe('/metrics');
    expect(Number(/^proofgate_audit_queue_bytes\{sink="http"\} (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
    campaign.reckon();
    expect(campaign.all().get('200')).toBeGreaterThan(0);
    // stop() fails unless the exit code is 0 and in time.
    await verifier.stop();
    expect(readTrailOf(collector.taken.map(({ text: taken }) => taken).join('')).torn).toEqual([]);
  },
  CAMPAIGN_TIMEOUT_MS,
);
