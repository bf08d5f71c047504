/** Fields that the forms of enrollment policies share. */
import type { Schemas } from '../api/client';
import { visible } from '../api/visible';
import type { Field } from '../parts/fields';

/** Fields that can be changed later. */
export const POLICY_TERMS: readonly Field[] = [
  {
    name: 'approval',
    label: 'Approval',
    description: 'Whether an operator decides about each key.',
    options: [
      { value: 'automatic', label: 'automatic: the token is enough' },
      { value: 'manual', label: 'manual: an operator approves' },
    ],
  },
  {
    name: 'max_key_lifetime_seconds',
    label: 'Maximum lifetime of a key, in seconds',
    description: '60 to 86400. A key ends with its token if that is earlier.',
    isNumber: true,
  },
  {
    name: 'max_keys_per_token',
    label: 'Maximum number of keys per token',
    description: '1 to 5. A restarted pod reuses its token.',
    isNumber: true,
    isOptional: true,
  },
];

/** Forms of a verified subject, by what issues the token. */
export const SERVICE_ACCOUNT = 'system:serviceaccount:<namespace>:<name>';
export const SPIFFE_ID = 'spiffe://<trust domain>/<path>';

const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const IS_SERVICE_ACCOUNT = new RegExp(`^system:serviceaccount:${LABEL}:${LABEL}(?:\\.${LABEL})*$`);
/** Source: SPIFFE-ID, sections 2.1 and 2.2. */
const IS_SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]+(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;

/** Control rejects all of them but a wrong SPIFFE ID. Source: `isPossibleSubject` of src/control/enrollment/policies.ts. */
export function subjectFault(subject: string): string | undefined {
  if (subject === '') return undefined;
  if (!/^[!-~]{1,512}$/.test(subject)) return 'must be ASCII without spaces, at most 512 characters';
  if (/^system:serviceaccount:/i.test(subject) && !IS_SERVICE_ACCOUNT.test(subject)) {
    return `must be ${SERVICE_ACCOUNT}, without patterns`;
  }
  if (/^spiffe:/i.test(subject) && !IS_SPIFFE_ID.test(subject)) return `must be ${SPIFFE_ID}`;
  return undefined;
}

export interface ActiveRevision {
  readonly source: Schemas['Source'];
  readonly revision: Schemas['SourceRevision'];
  /** Value that identifies the revision in a form. */
  readonly value: string;
  readonly label: string;
}

/** The revisions that a policy can be bound to. */
export function activeRevisions(
  sources: readonly Schemas['Source'][],
  states: readonly string[] = ['active'],
): readonly ActiveRevision[] {
  return sources.flatMap((source) =>
    source.revisions
      .filter(({ state }) => states.includes(state))
      .map((revision) => ({
        source,
        revision,
        value: `${source.source_id} ${revision.revision}`,
        label: visible(`${source.display_name}, revision ${revision.revision} (${revision.issuer})`),
      })),
  );
}
