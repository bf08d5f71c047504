import pg from 'pg';
import { keepTrying, pause } from './keep-trying.ts';
import { type Notice, type ReportIncident, StoreUnavailableError, type Topic } from './port.ts';
import { endConnection } from './postgres-connection.ts';

/** The channel of LISTEN and NOTIFY. */
export const NOTICE_CHANNEL = 'proofgate_control';
const TOPICS: readonly Topic[] = ['site_changed', 'site_published', 'enrollment_decided'];
const RECONNECT_DELAY_MS = 500;
const HEARTBEAT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 5000;

export interface Listening {
  readonly connection: pg.ClientConfig;
  /** This instance: it has heard its own notices already. */
  readonly instance: string;
  readonly listener: (notice: Notice) => void;
  readonly report: ReportIncident;
}

/**
 * Hears notices on a connection of its own, and connects again when that breaks. What was said meanwhile is lost: a
 * notice is a hint, and whoever waits for one also looks from time to time. Resolves when it listens, or could not for now.
 * @returns how to stop
 */
export async function listenForNotices(listening: Listening): Promise<() => Promise<void>> {
  return new Promise((resolve) => {
    const stop = keepTrying(RECONNECT_DELAY_MS, async (stopping) => {
      let wasListening = false;
      try {
        await listenOnce(listening, stopping, () => {
          wasListening = true;
          resolve(stop);
        });
      } catch {
        resolve(stop);
        // Once, not at every attempt to connect again; without the driver's text.
        const error = new StoreUnavailableError('the connection for notices broke');
        if (wasListening) listening.report({ kind: 'notices_interrupted', name: '', error });
      }
    });
  });
}

async function listenOnce(
  { connection, instance, listener }: Listening,
  stopping: AbortSignal,
  onListening: () => void,
): Promise<void> {
  const client = new pg.Client({ ...connection, query_timeout: ANSWER_TIMEOUT_MS });
  const broken = new AbortController();
  client.on('error', () => broken.abort());
  client.on('end', () => broken.abort());
  client.on('notification', ({ payload }) => {
    const notice = parseNotice(payload, instance);
    if (notice !== undefined) listener(notice);
  });
  const over = AbortSignal.any([stopping, broken.signal]);
  try {
    await client.connect();
    await client.query(`listen ${NOTICE_CHANNEL}`);
    onListening();
    while (!over.aborted) {
      await pause(HEARTBEAT_MS, over);
      if (!over.aborted) await client.query('select 1');
    }
    if (!stopping.aborted) throw new Error('the connection broke');
  } finally {
    await endConnection(client);
  }
}

export function noticeText(instance: string, { topic, reference }: Notice): string {
  return `${instance} ${topic} ${reference}`;
}

/** @returns undefined for what is no notice, or this instance's own */
function parseNotice(payload: string | undefined, instance: string): Notice | undefined {
  const [sender, topicName, reference, ...rest] = payload?.split(' ') ?? [];
  const topic = TOPICS.find((known) => known === topicName);
  if (topic === undefined || reference === undefined || rest.length > 0 || sender === instance)
    return undefined;
  return { topic, reference };
}
