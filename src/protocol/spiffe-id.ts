/**
 * Canonical SPIFFE IDs. A subject has one spelling, so all code that compares or splits subjects, here or upstream,
 * agrees on the identity.
 * Sources: SPIFFE-ID specification section 2; X.509-SVID specification section 3.1, for the required path of a
 * workload; docs/design/protocol.md "Passport".
 */

export const TRUST_DOMAIN_PATTERN = '^[a-z0-9._-]{1,255}$';

const SCHEME = /^spiffe:/i;
/** Section 2.3; subjects are shorter. */
const MAX_ID_LENGTH = 2048;
const WORKLOAD_ID = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;
/** A prefix without its final slash may also be just the trust domain. */
const ID_PREFIX = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}\/)[A-Za-z0-9._-]+)*\/$/;

/** The rule of the checks, in words. */
export const SPIFFE_ID_RULE =
  'a canonical SPIFFE ID: spiffe://, a trust domain of a-z 0-9 . _ -, then segments of A-Z a-z 0-9 . _ -, none empty, "." or ".."';

/** Whether a subject is a workload's canonical SPIFFE ID, or not a SPIFFE ID at all. */
export function isCanonicalSubject(subject: string): boolean {
  return !SCHEME.test(subject) || (subject.length <= MAX_ID_LENGTH && WORKLOAD_ID.test(subject));
}

/** Whether a canonical subject can begin with this prefix: whole segments of a SPIFFE ID, or not a SPIFFE ID at all. */
export function isCanonicalSubjectPrefix(prefix: string): boolean {
  return !SCHEME.test(prefix) || (prefix.length <= MAX_ID_LENGTH && ID_PREFIX.test(prefix));
}

/** Whether a subject or prefix is in the trust domain; true for one that is not a SPIFFE ID. */
export function subjectLiesInTrustDomain(subject: string, trustDomain: string): boolean {
  return !SCHEME.test(subject) || subject.startsWith(`spiffe://${trustDomain}/`);
}
