/** Follows Control's server-sent events and reads changed resources again. */
import { useEffect, useState } from 'react';
import { controlUrl } from './client';
import { endSession, queries } from './session';

/**
 * Minimum pause between reads of changes. It doubles while changes continue, so that consoles of a busy site do not
 * overload Control.
 */
const MIN_PAUSE_MS = 4_000;
const MAX_PAUSE_MS = 16_000;
/** Interval between two attempts to connect. */
const RETRY_MS = 3_000;

/** @returns whether the connection is open; undefined until that is known */
export function useLiveChanges(): boolean | undefined {
  const [connected, setConnected] = useState<boolean>();
  useEffect(() => {
    const reader = new Reader();
    let source: EventSource | undefined;
    let retry: number | undefined;
    let wasLost = false;
    const connect = () => {
      const opened = new EventSource(`${controlUrl}/v1/changes`);
      source = opened;
      opened.onopen = () => {
        setConnected(true);
        if (wasLost) reader.readAll();
        wasLost = false;
      };
      opened.onerror = () => {
        // The browser reconnects by itself only after some failures, and not after an error response.
        opened.close();
        wasLost = true;
        setConnected(false);
        retry = window.setTimeout(connect, RETRY_MS);
        // Checks whether the session has ended.
        void queries.invalidateQueries({ queryKey: ['session'] });
      };
      opened.addEventListener('change', ({ data }) => reader.note(siteOf(data)));
      opened.addEventListener('session_ended', endSession);
    };
    // A hidden page holds no connection: over HTTP/1.1, browsers open at most six to a host.
    const followVisibility = () => {
      source?.close();
      window.clearTimeout(retry);
      if (document.visibilityState === 'hidden') wasLost = true;
      else connect();
    };
    followVisibility();
    document.addEventListener('visibilitychange', followVisibility);
    return () => {
      document.removeEventListener('visibilitychange', followVisibility);
      source?.close();
      window.clearTimeout(retry);
      reader.stop();
    };
  }, []);
  return connected;
}

/** Reads the data of changed sites again, with a pause after each read. */
class Reader {
  readonly #waiting = new Set<string | undefined>();
  #timer: number | undefined;
  #readAtMs = 0;
  #pauseMs = MIN_PAUSE_MS;

  /** @param siteId undefined when anything may have changed */
  note(siteId: string | undefined): void {
    this.#waiting.add(siteId);
    const waitMs = Math.max(0, this.#readAtMs + this.#pauseMs - Date.now());
    this.#timer ??= window.setTimeout(() => this.#read(), waitMs);
  }

  readAll(): void {
    window.clearTimeout(this.#timer);
    this.#waiting.add(undefined);
    this.#read();
  }

  stop(): void {
    window.clearTimeout(this.#timer);
  }

  #read(): void {
    const sites = new Set(this.#waiting);
    this.#waiting.clear();
    this.#timer = undefined;
    const sinceReadMs = Date.now() - this.#readAtMs;
    this.#pauseMs =
      sinceReadMs < 2 * this.#pauseMs ? Math.min(2 * this.#pauseMs, MAX_PAUSE_MS) : MIN_PAUSE_MS;
    this.#readAtMs = Date.now();
    void queries.invalidateQueries({
      predicate: ({ queryKey: [kind, siteId] }) =>
        kind !== 'session' && (kind !== 'site' || sites.has(undefined) || sites.has(String(siteId))),
    });
  }
}

function siteOf(data: unknown): string | undefined {
  const change: unknown = JSON.parse(String(data));
  if (typeof change !== 'object' || change === null || !('site_id' in change)) return undefined;
  return typeof change.site_id === 'string' ? change.site_id : undefined;
}
