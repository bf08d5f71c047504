/**
 * Fetches the keys of OAuth authorization servers on schedule, and has bundles published when they change. Runs on the leading
 * instance.
 * Source: docs/operate/control.md "OAuth issuers".
 */
import type { JsonFetcher } from '../../process/outbound-fetch/outbound-fetch.ts';
import { oauthIssuerView } from '../configuration/oauth-issuers.ts';
import { fetchOAuthKeys } from '../issuers/fetch-oauth-keys.ts';
import { DEFAULT_REFRESH_INTERVAL_MS } from '../issuers/key-set-cache.ts';
import { isTimely } from '../issuers/source-keys.ts';
import { audited, BY_CONTROL, placeInSite, publishChange } from '../resource/change.ts';
import { leadRounds } from '../store/leader-jobs.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';

const ROUND_MS = 5_000;
const CONCURRENT_FETCHES = 4;

export interface OAuthKeyRefresh {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly fetcher: JsonFetcher;
  /** For logs and metrics; must not throw. @param outcome `refreshed` or the code of the failure */
  readonly onFetched: (row: RowOf<'oauthIssuer'>, outcome: string) => void;
  /** Reports a failure that is retried. Must not throw. */
  readonly report: (error: unknown) => void;
}

/** @returns a function that stops; it resolves when the current round is finished */
export function startOAuthKeyRefresh(refresh: OAuthKeyRefresh): () => Promise<void> {
  const { report, store } = refresh;
  return leadRounds(store, 'oauth-key-refresh', {
    pauseMs: ROUND_MS,
    report,
    run: () => refreshOAuthKeys(refresh),
  });
}

/** One round: fetches what is due, then withdraws keys whose last successful fetch is too old. */
export async function refreshOAuthKeys(refresh: OAuthKeyRefresh): Promise<void> {
  const { nowMs, report, store } = refresh;
  const due = await store.read((tx) => tx.oauthIssuers.due(nowMs() - DEFAULT_REFRESH_INTERVAL_MS, nowMs()));
  const waiting = [...due];
  const work = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      await refreshOne(refresh, row).catch(report);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_FETCHES }, work));
  for (const row of await store.read((tx) => tx.oauthIssuers.keyed())) {
    // One that fails, such as a definition of a newer Control, must not keep the keys of others.
    if (!isTimely(row.fetchedAtMs ?? 0, nowMs())) await note(refresh, row, { keys: null }).catch(report);
  }
}

async function refreshOne(refresh: OAuthKeyRefresh, row: RowOf<'oauthIssuer'>): Promise<void> {
  const attemptedAtMs = refresh.nowMs();
  const { jwks_url: jwksUrl } = oauthIssuerView(row).definition;
  const fetched = await fetchOAuthKeys({ issuer: row.issuer, jwksUrl }, refresh.fetcher, refresh.nowMs);
  if (fetched.kind === 'failed') {
    refresh.onFetched(row, fetched.code);
    await note(refresh, row, { attemptedAtMs, failureCode: fetched.code });
    return;
  }
  const { fetchedAtMs, keys } = fetched;
  if (keys.length === 0) {
    // The server withdrew all keys. It counts as a failure, so that an operator learns of it.
    const failureCode = 'key_set_no_usable_key';
    refresh.onFetched(row, failureCode);
    await note(refresh, row, { attemptedAtMs, failureCode, keys: null });
    return;
  }
  refresh.onFetched(row, 'refreshed');
  await note(refresh, row, { attemptedAtMs, failureCode: null, fetchedAtMs, keys: JSON.stringify(keys) });
}

type Noted = Partial<Pick<RowOf<'oauthIssuer'>, 'attemptedAtMs' | 'failureCode' | 'fetchedAtMs' | 'keys'>>;

/** Does nothing when an operator has changed or removed the server meanwhile: its next fetch is due. */
async function note({ nowMs, store }: OAuthKeyRefresh, row: RowOf<'oauthIssuer'>, set: Noted): Promise<void> {
  const { definition, issuer, siteId, version } = row;
  await store.writeUnaudited({ kind: 'site', siteId }, async (tx) => {
    const before = await tx.oauthIssuers.find(siteId, issuer);
    // A server that was removed and created again has the first version again.
    if (before?.version !== version || before.definition !== definition) return;
    await tx.oauthIssuers.noteFetch(row, set);
    const after = { ...before, ...set };
    if (after.keys === before.keys) return;
    await publishChange(tx, siteId, { kind: 'policy' }, nowMs());
    const place = await placeInSite(tx, siteId);
    const views = { before: oauthIssuerView(before), after: oauthIssuerView(after) };
    const change = { what: 'oauth_issuer.change_keys', id: issuer, place, ...views } as const;
    await tx.audit.append(audited(BY_CONTROL, change), nowMs());
  });
}
