/** The verifier's inputs for several faults of the decision table at once: the bundle, the request and the replay store. */
import type { Snapshot } from '../../../src/bundle/compile/snapshot.ts';
import { CONSUMED } from '../../../src/verifier/replay/store.ts';
import { type RecordingReplayStore, scriptedReplayStore } from '../fakes/replay-store.ts';
import { bothEdits, type RequestEdits, type SignedRequest, signRequest } from '../fixtures/signed-request.ts';
import {
  compileSite,
  entriesWhere,
  type SiteContent,
  type SiteKeys,
  siteContent,
} from '../fixtures/snapshot.ts';
import type { Fault, TableCaller } from './fault.ts';

export const TABLE_CALLERS: readonly TableCaller[] = ['billing', 'broker'];

export function canMeet(first: Fault, second: Fault): boolean {
  return !first.sharesPlace?.some((place) => second.sharesPlace?.includes(place));
}

/** Fails when a fault finds nothing to change, because the table would test something else. */
export function applyToContent(content: SiteContent, faults: readonly Fault[]): SiteContent {
  entriesWhere(content.routes, ({ route_id }) => route_id === 'everything');
  for (const fault of faults) fault.content?.(content);
  return content;
}

/** Undefined if a fault is a missing bundle. */
export async function snapshotWith(keys: SiteKeys, faults: readonly Fault[]): Promise<Snapshot | undefined> {
  if (faults.some(({ noBundle }) => noBundle === true)) return undefined;
  return compileSite(applyToContent(siteContent(keys), faults));
}

/** @param edits further edits besides those of the faults */
export function requestWith(
  keys: SiteKeys,
  caller: TableCaller,
  faults: readonly Fault[],
  edits: RequestEdits = {},
): SignedRequest {
  const all = faults.map(({ request }) => request ?? {}).reduce(bothEdits, edits);
  return signRequest(keys, { caller, route: 'everything' }, all);
}

export function storeWith(faults: readonly Fault[]): RecordingReplayStore {
  const answer = faults.find(({ replay }) => replay !== undefined)?.replay ?? CONSUMED;
  return scriptedReplayStore(() => answer);
}
