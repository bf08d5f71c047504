import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Notice, Topic } from './port.ts';

/** The channel of LISTEN and NOTIFY. */
export const NOTICE_CHANNEL = 'proofgate_control';
const TOPICS: readonly Topic[] = ['site_changed', 'site_published', 'enrollment_decided'];
const RECONNECT_DELAY_MS = 500;

/**
 * Hears notices on a connection of its own, and connects again when that breaks. What was said meanwhile is lost: a
 * notice is a hint, and whoever waits for one also looks from time to time.
 * @returns how to stop
 */
export function listenForNotices(
  connection: pg.ClientConfig,
  listener: (notice: Notice) => void,
): () => Promise<void> {
  const stop = new AbortController();
  const ended = keepListening(connection, listener, stop.signal);
  return async () => {
    stop.abort();
    await ended;
  };
}

async function keepListening(
  connection: pg.ClientConfig,
  listener: (notice: Notice) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const client = new pg.Client(connection);
    const broken = new Promise<void>((resolve) => {
      client.on('error', () => resolve());
      client.on('end', () => resolve());
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    client.on('notification', ({ payload }) => {
      const notice = parseNotice(payload);
      if (notice !== undefined) listener(notice);
    });
    try {
      await client.connect();
      await client.query(`listen ${NOTICE_CHANNEL}`);
      await broken;
    } catch {
      // Tried again below.
    }
    await client.end().catch(() => {});
    await delay(RECONNECT_DELAY_MS, undefined, { signal }).catch(() => {});
  }
}

function parseNotice(payload: string | undefined): Notice | undefined {
  const space = payload?.indexOf(' ') ?? -1;
  const topic = TOPICS.find((known) => known === payload?.slice(0, space));
  return topic && { topic, reference: payload?.slice(space + 1) ?? '' };
}
