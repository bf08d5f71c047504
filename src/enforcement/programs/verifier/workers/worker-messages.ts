/** Messages between the primary and its workers. A message of any other form is ignored. */
import type { ChainPosition } from '../../../../bundle/format/chain.ts';
import { parseSummary } from '../../../../bundle/format/decision-summary.ts';
import { type KeyUse, MAX_KEY_USES } from '../../../../bundle/format/key-use.ts';
import { MAX_UNKNOWN_KEYS, type UnknownKey } from '../../../../bundle/format/unknown-keys.ts';
import type { ReadinessCheck } from '../../../../process/admin/admin-server.ts';
import { isJsonObject } from '../../../../protocol/strict-json.ts';
import type { WorkerReport } from '../../../../verifier/summaries/worker-counts.ts';

/** Environment variable that holds a worker's number, from 1. */
export const WORKER_NUMBER = 'PROOFGATE_WORKER_NUMBER';

export type WorkerMessage =
  /** The worker is ready to receive messages. */
  | { readonly kind: 'hearing' }
  /** Sent several times a second; also the worker's heartbeat. */
  | { readonly kind: 'state'; readonly address: string; readonly checks: readonly ReadinessCheck[] }
  | { readonly kind: 'metrics'; readonly id: number; readonly text: string }
  | WorkerReport
  /** The worker decides by this bundle from now on. */
  | { readonly kind: 'loaded'; readonly position: ChainPosition }
  /** The worker could not start, and the settings make a retry useless. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

export type PrimaryMessage =
  | { readonly kind: 'scrape'; readonly id: number }
  /** Sets health to NOT_SERVING; Checks are answered as before. */
  | { readonly kind: 'leave' }
  /** Closes the ext_authz server; a worker that is still starting does not open it. */
  | { readonly kind: 'close' };

export function parseWorkerMessage(value: unknown): WorkerMessage | undefined {
  if (!isJsonObject(value)) return undefined;
  const { address, checks, code, id, keys, kind, message, text, uses } = value;
  switch (kind) {
    case 'hearing':
      return { kind };
    case 'state':
      return typeof address === 'string' && Array.isArray(checks) && checks.every(isCheck)
        ? { kind, address, checks }
        : undefined;
    case 'metrics':
      return typeof id === 'number' && typeof text === 'string' ? { kind, id, text } : undefined;
    case 'counted': {
      const summary = parseSummary(value.summary);
      return summary && { kind, summary };
    }
    case 'used':
      return Array.isArray(uses) && uses.length <= MAX_KEY_USES && uses.every(isUse)
        ? { kind, uses }
        : undefined;
    case 'unknown':
      return Array.isArray(keys) && keys.length <= MAX_UNKNOWN_KEYS && keys.every(isUnknownKey)
        ? { kind, keys }
        : undefined;
    case 'loaded': {
      const position = parsePosition(value.position);
      return position && { kind, position };
    }
    case 'failed':
      return typeof code === 'string' && typeof message === 'string' ? { kind, code, message } : undefined;
    default:
      return undefined;
  }
}

export function parsePrimaryMessage(value: unknown): PrimaryMessage | undefined {
  if (!isJsonObject(value)) return undefined;
  const { id, kind } = value;
  switch (kind) {
    case 'leave':
    case 'close':
      return { kind };
    case 'scrape':
      return typeof id === 'number' ? { kind, id } : undefined;
    default:
      return undefined;
  }
}

function isUse(value: unknown): value is KeyUse {
  return isJsonObject(value) && typeof value.keyId === 'string' && typeof value.usedAtSeconds === 'number';
}

function isUnknownKey(value: unknown): value is UnknownKey {
  return isJsonObject(value) && typeof value.issuer === 'string' && typeof value.kid === 'string';
}

function parsePosition(value: unknown): ChainPosition | undefined {
  if (!isJsonObject(value)) return undefined;
  const { head, revision } = value;
  return typeof head === 'string' && typeof revision === 'number' && Number.isSafeInteger(revision)
    ? { revision, head }
    : undefined;
}

function isBundle(value: unknown): boolean {
  return (
    isJsonObject(value) &&
    typeof value.authSite === 'string' &&
    typeof value.revision === 'number' &&
    typeof value.head === 'string'
  );
}

function isCheck(value: unknown): value is ReadinessCheck {
  const isText = (text: unknown) => text === undefined || typeof text === 'string';
  const isList = (list: unknown) =>
    list === undefined || (Array.isArray(list) && list.every((item) => typeof item === 'string'));
  return (
    isJsonObject(value) &&
    typeof value.name === 'string' &&
    isText(value.problem) &&
    isText(value.warning) &&
    isList(value.routes) &&
    (value.bundle === undefined || isBundle(value.bundle))
  );
}
