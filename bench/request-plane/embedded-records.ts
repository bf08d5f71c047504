/**
 * Fills an embedded store and prints how many resident bytes each record takes. It runs as a process of its own.
 * Usage: node embedded-records.js RECORDS
 */
import { createMemoryReplayStore } from '../../src/verifier/replay/memory.ts';
import { collectGarbage } from '../collect-garbage.ts';
import { residentMib } from '../machine.ts';
import { claimOf } from './replay-claims.ts';

const MIB = 1024 * 1024;

const records = Number(process.argv[2]);
const store = createMemoryReplayStore({ maxRecords: records, holderQuotaPerMinute: records });
collectGarbage();
const beforeMib = residentMib(process.pid);
// The store's start fence ends before the issue time of these claims.
const nowSeconds = Math.floor(Date.now() / 1000) + 10;
for (let index = 0; index < records; index++) {
  const outcome = await store.consume(claimOf(index, nowSeconds));
  if (outcome.kind !== 'consumed') throw new Error(`void run: ${JSON.stringify(outcome)}`);
}
collectGarbage();
console.log(((residentMib(process.pid) - beforeMib) * MIB) / records);
await store.close();
