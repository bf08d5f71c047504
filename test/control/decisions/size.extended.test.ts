/**
 * Measures how much of a disk the decisions of 100 targets take, kept for seven days, when every row is as large as it may be.
 * By default with a few targets, and as many times that as there would be; `PROOFGATE_TEST_SUMMARY_TARGETS=100` writes all.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import {
  DecisionCounts,
  type DecisionSummary,
  MAX_SUMMARY_BYTES,
} from '../../../src/bundle/format/decision-summary.ts';
import { summaryRow } from '../../../src/control/decisions/collected-summaries.ts';
import { KEPT_SECONDS } from '../../../src/control/decisions/pruned-summaries.ts';
import { newId } from '../../../src/control/domain/resource-identifiers.ts';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { DATABASE_FILE, openSqliteStore } from '../../../src/control/store/sqlite.ts';
import { TestPostgresServer } from '../../support/harness/postgres-server.ts';
import { NOW_MS } from '../store/databases.ts';

const TARGETS = 100;
const MEASURED_TARGETS = Number(process.env.PROOFGATE_TEST_SUMMARY_TARGETS ?? 4);
const TIMEOUT_MS = Math.max(300_000, MEASURED_TARGETS * 30_000);
const MAX_BYTES = 700_000_000;
const STARTS = [...starts(60, KEPT_SECONDS.minute), ...starts(3600, KEPT_SECONDS.hour)];

function starts(spanSeconds: number, keptSeconds: number) {
  return Array.from({ length: keptSeconds / spanSeconds }, (_, n) => ({
    spanSeconds,
    startSeconds: n * spanSeconds,
  }));
}

/** As long as it may be, with IDs that cannot be compressed. */
function largestSummary(): DecisionSummary {
  const counts = new DecisionCounts();
  let size = 0;
  while (size < MAX_SUMMARY_BYTES - 100) {
    const routeId = randomBytes(9).toString('base64url');
    const decision = { detail: '', routeId, method: 'GET', durationMs: 1 } as const;
    counts.add({ ...decision, outcome: 'allowed', reason: undefined });
    counts.add({ ...decision, outcome: 'denied', reason: 'jti_replay' });
    size = Buffer.byteLength(JSON.stringify(counts.summary()));
  }
  return counts.summary();
}

/** Each row is compressed on its own, so that a few serve for all. */
const LARGEST = Array.from({ length: 50 }, largestSummary);

async function fill(store: ControlStore): Promise<void> {
  for (let target = 0; target < MEASURED_TARGETS; target++) {
    const place = { siteId: 'shop-eu-1', targetId: newId('target', NOW_MS) };
    // Few at once, in the order of time within each target as they come.
    for (let part = 0; part < STARTS.length; part += 100) {
      const rows = STARTS.slice(part, part + 100).map((start) =>
        summaryRow(
          { ...place, ...start },
          LARGEST[(target + start.startSeconds / 60) % LARGEST.length] ?? largestSummary(),
        ),
      );
      await store.writeUnaudited(undefined, (tx) => tx.decisionSummaries.put(rows));
    }
  }
}

/** @param bytes that the measured targets take */
function expectSmall(bytes: number): void {
  const all = bytes * (TARGETS / MEASURED_TARGETS);
  const measured = `${MEASURED_TARGETS} measured`;
  console.log(`${TARGETS} targets, 7 days, largest rows: ${Math.round(all / 1e6)} MB (${measured})`);
  expect(all).toBeLessThanOrEqual(MAX_BYTES);
}

const nowMs = () => NOW_MS;

it(
  'SQLite',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'proofgate-size-'));
    const sizes: number[] = [];
    for (const work of [async () => undefined, fill]) {
      const store = await openSqliteStore({ dataDirectory: directory, nowMs });
      await work(store);
      // Closing moves all into the file.
      await store.close();
      sizes.push((await stat(join(directory, DATABASE_FILE))).size);
    }
    const [before = 0, after = 0] = sizes;
    await rm(directory, { recursive: true });
    expectSmall(after - before);
  },
  TIMEOUT_MS,
);

it(
  'PostgreSQL',
  async () => {
    const server = await TestPostgresServer.start();
    const url = await server.createDatabase();
    const store = await openPostgresStore({ url, nowMs });
    await fill(store);
    const [row] = await server.query(url, "select pg_total_relation_size('decision_summary') as bytes");
    await store.close();
    await server.stop();
    expectSmall(Number(row?.bytes));
  },
  TIMEOUT_MS,
);
