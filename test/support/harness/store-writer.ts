/**
 * A process that writes to a store as fast as it answers, and prints each acknowledgement on standard output: one `acknowledged
 * <client>` a line. Tests kill it and check that no acknowledged write is lost.
 */
import { writeSync } from 'node:fs';
import type { ControlStore } from '../../../src/control/store/port.ts';
import { openPostgresStore } from '../../../src/control/store/postgres.ts';
import { openSqliteStore } from '../../../src/control/store/sqlite.ts';
import { scriptSettings } from './run-typescript.ts';

export interface WriterSettings {
  readonly database:
    | { readonly kind: 'sqlite'; readonly dataDirectory: string }
    | { readonly kind: 'postgres'; readonly url: string };
  /** Must be there. */
  readonly siteId: string;
  /** Distinguishes the rows of this process. */
  readonly prefix: string;
  /** How many mutations are under way at a time. */
  readonly concurrency: number;
}

const settings = scriptSettings<WriterSettings>();
const store = await open(settings);
let written = 0;
writeSync(1, 'ready\n');
await Promise.all(Array.from({ length: settings.concurrency }, () => writeOn(store, settings)));

function open({ database }: WriterSettings): Promise<ControlStore> {
  return database.kind === 'sqlite'
    ? openSqliteStore({ dataDirectory: database.dataDirectory, nowMs: Date.now })
    : openPostgresStore({ url: database.url, nowMs: Date.now });
}

async function writeOn(to: ControlStore, { siteId, prefix }: WriterSettings): Promise<never> {
  for (;;) {
    written += 1;
    const clientId = `${prefix}-${written}`;
    const nowMs = Date.now();
    await to.mutate({ kind: 'site', siteId }, async (tx) => {
      await tx.clients.add({
        siteId,
        clientId,
        subject: clientId,
        context: '{}',
        version: 1,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      });
      const resource = { kind: 'client', id: clientId };
      const kind = 'proofgate.control.client.create';
      return { result: undefined, audit: [{ kind, actor: 'control', resource, place: { siteId } }] };
    });
    // Synchronously: what was said has left this process before anything can kill it.
    writeSync(1, `acknowledged ${clientId}\n`);
    await new Promise(setImmediate);
  }
}
