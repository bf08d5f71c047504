/**
 * Classifies failed commands and describes them to operators. The peer may be any server and may echo what we sent, the
 * password included, so no text of a reply is passed on.
 */

export type RedisFault =
  /** The server replied with an error, so the command had no effect. `code` is one of `REPLY_CODES`. */
  | { readonly kind: 'refused'; readonly code: string }
  /** The command may have been sent and got no reply. It may have had its effect, or have it later. */
  | { readonly kind: 'no_answer' };

/** Error codes that are useful to an operator; every other one is reported as `ERR`. */
const REPLY_CODES = new Set([
  'ASK',
  'BUSY',
  'CLUSTERDOWN',
  'CROSSSLOT',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'MOVED',
  'NOAUTH',
  'NOPERM',
  'NOREPLICAS',
  'NOSCRIPT',
  'OOM',
  'READONLY',
  'TRYAGAIN',
  'WRONGPASS',
  'WRONGTYPE',
]);

/** The error of Redis 7.0 within a script that is `NOPERM` outside (scriptVerifyACL). */
const SCRIPT_NOPERM = /^(?:ERR )?The user executing the script can't /;

/** Codes of Node.js errors (`ECONNREFUSED`, `ERR_TLS_…`, `DEPTH_ZERO_SELF_SIGNED_CERT`). */
const NODE_ERROR_CODE = /^[A-Z][A-Z0-9_]{1,63}$/;

/** Classifies a command's rejection. Only an error reply of the server proves that the command had no effect. */
export function classifyFault(error: unknown): RedisFault {
  if (!isReplyError(error)) return { kind: 'no_answer' };
  if (SCRIPT_NOPERM.test(error.message)) return { kind: 'refused', code: 'NOPERM' };
  const firstWord = error.message.split(' ', 1)[0] ?? '';
  return { kind: 'refused', code: REPLY_CODES.has(firstWord) ? firstWord : 'ERR' };
}

/** Describes a failed connection in one line without secrets; `label` is `host:port`. */
export function describeConnectionError(error: unknown, label: string): string {
  const fault = classifyFault(error);
  if (fault.kind === 'refused') return describeRefusal(fault.code, label);
  const code = nodeErrorCode(error);
  return code === undefined ? describeSilence(label) : `cannot connect to Redis at ${label} (${code})`;
}

export function describeRefusal(code: string, label: string): string {
  if (code === 'NOAUTH') return `Redis at ${label} asks for a password, and none is configured (NOAUTH)`;
  if (code === 'WRONGPASS') return `Redis at ${label} refuses the user name or password (WRONGPASS)`;
  return `Redis at ${label} refuses what the replay store needs (${code})`;
}

export function describeSilence(label: string): string {
  return `the server at ${label} does not answer in time, or not as Redis does`;
}

/** ioredis exports the class without a type; redis-errors 1.2 and ioredis 6 use this name. */
function isReplyError(error: unknown): error is { readonly message: string } {
  return (
    typeof error === 'object' &&
    error !== null &&
    'name' in error &&
    error.name === 'ReplyError' &&
    'message' in error &&
    typeof error.message === 'string'
  );
}

function nodeErrorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  const { code } = error;
  return typeof code === 'string' && NODE_ERROR_CODE.test(code) ? code : undefined;
}
