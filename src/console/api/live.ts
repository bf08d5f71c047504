/** Server-sent events of Control: what changed is read again. */
import { useEffect, useState } from 'react';
import { controlUrl } from './client';
import { endSession, queries } from './session';

/** Changes that come meanwhile wait: a busy site must not make every console read again for each of them. */
const MIN_PAUSE_MS = 4_000;

/** @returns whether the connection is there; undefined until it is known */
export function useLiveChanges(): boolean | undefined {
  const [connected, setConnected] = useState<boolean>();
  useEffect(() => {
    const source = new EventSource(`${controlUrl}/v1/changes`);
    const waiting = new Set<string | undefined>();
    let timer: number | undefined;
    let readAtMs = 0;
    let wasLost = false;
    const read = () => {
      timer = undefined;
      readAtMs = Date.now();
      const sites = new Set(waiting);
      waiting.clear();
      void queries.invalidateQueries({
        predicate: ({ queryKey: [kind, siteId] }) =>
          kind !== 'session' && (kind !== 'site' || sites.has(undefined) || sites.has(String(siteId))),
      });
    };
    const note = (siteId: string | undefined) => {
      waiting.add(siteId);
      timer ??= window.setTimeout(read, Math.max(0, readAtMs + MIN_PAUSE_MS - Date.now()));
    };
    source.onopen = () => {
      setConnected(true);
      if (wasLost) note(undefined);
    };
    source.onerror = () => {
      wasLost = true;
      setConnected(false);
      // Whether it was the session that ended.
      void queries.invalidateQueries({ queryKey: ['session'] });
    };
    source.addEventListener('change', ({ data }) => note(siteOf(data)));
    source.addEventListener('session_ended', endSession);
    return () => {
      source.close();
      window.clearTimeout(timer);
    };
  }, []);
  return connected;
}

function siteOf(data: unknown): string | undefined {
  const change: unknown = JSON.parse(String(data));
  if (typeof change !== 'object' || change === null || !('site_id' in change)) return undefined;
  return typeof change.site_id === 'string' ? change.site_id : undefined;
}
