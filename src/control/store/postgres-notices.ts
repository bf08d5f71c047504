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
  /** Name of this instance, to skip its own notices. */
  readonly instance: string;
  readonly listener: (notice: Notice) => void;
  readonly report: ReportIncident;
}

/**
 * Receives notices on its own connection and reconnects when that breaks. Notices sent meanwhile are lost: a notice is a
 * hint, and receivers also poll. Resolves when it listens, or when the first attempt failed.
 * @returns a function that stops
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
        // Reported once, not at every reconnect, and without the driver's text.
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

/** @returns undefined unless the payload is a notice of another instance */
function parseNotice(payload: string | undefined, instance: string): Notice | undefined {
  const [sender, topicName, reference, ...rest] = payload?.split(' ') ?? [];
  const topic = TOPICS.find((known) => known === topicName);
  if (topic === undefined || reference === undefined || rest.length > 0 || sender === instance)
    return undefined;
  return { topic, reference };
}
