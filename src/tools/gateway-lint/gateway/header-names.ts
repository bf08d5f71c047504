/** Names of Proofgate's headers in gateway configurations. */
import type { View } from './view.ts';

/** Headers that only the verifier may set: docs/operate/enforcement.md "What the sidecar answers". */
export const CONTEXT_HEADERS: readonly string[] = [
  'x-proofgate-subject',
  'x-proofgate-issuer',
  'x-proofgate-trust-domain',
  'x-proofgate-key-id',
  'x-proofgate-key-binding',
  'x-proofgate-client-id',
  'x-proofgate-route-id',
  'x-proofgate-auth-site',
  'x-proofgate-decision-id',
  'x-proofgate-bundle-revision',
];

/** Whether the path of a check says that the gateway replaces the fields of proofs by those of the verifier's answer. */
export function asksForAllProofs(target: string): boolean {
  return target.includes('/all-proofs');
}

/** Header for checks over HTTP (envoy/http-service.yaml). It does not reach the API. */
export const HTTP_LENGTH_HEADER = 'x-proofgate-content-length';

export const DECISION_HEADER = 'x-proofgate-decision-id';

/** Headers of a denial. */
export const DENIAL_HEADERS: readonly string[] = ['x-proofgate-reason', DECISION_HEADER];

/** Matches any punctuation, because some APIs read `_` and `.` as `-`. */
export function isVendorHeader(name: View | string | undefined): boolean {
  const text = typeof name === 'string' ? name : (name?.text ?? '');
  return /^x[-_.]proofgate/i.test(text);
}

/** Whether a StringMatcher accepts this header or host name, which is in lower case. */
export function matches(matcher: View, name: string): boolean {
  const ignoreCase = matcher.get('ignore_case')?.flag === true;
  const part = (kind: string) => {
    const text = matcher.get(kind)?.text;
    return ignoreCase ? text?.toLowerCase() : text;
  };
  const prefix = part('prefix');
  const suffix = part('suffix');
  const contains = part('contains');
  return (
    part('exact') === name ||
    (prefix !== undefined && name.startsWith(prefix)) ||
    (suffix !== undefined && name.endsWith(suffix)) ||
    (contains !== undefined && name.includes(contains)) ||
    matchesRegex(matcher.at('safe_regex', 'regex')?.text, name)
  );
}

/** A regular expression that only RE2 can read counts as matching nothing, except that it may begin with `(?i)`. */
function matchesRegex(regex: string | undefined, name: string): boolean {
  if (regex === undefined) return false;
  try {
    const common = regex.replace(/^\(\?i\)/, '');
    return new RegExp(`^(?:${common})$`, common === regex ? '' : 'i').test(name);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
