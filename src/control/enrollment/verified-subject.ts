/** Whether a token can have the subject that a policy names: a mistake here would only ever be found by who fails to enroll. */
import { isIdentifier } from '../../protocol/identifiers.ts';

const SERVICE_ACCOUNT = 'system:serviceaccount:';
/** RFC 1123 labels; a service account's name may have several, joined by dots. */
const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const KUBERNETES = new RegExp(`^${SERVICE_ACCOUNT}(?<namespace>${LABEL}):(?<name>${LABEL}(?:\\.${LABEL})*)$`);
const MAX_SERVICE_ACCOUNT_NAME = 253;

/** Subjects compare exactly: there are no patterns, so a `*` in one that looks like a service account is a mistake. */
export function isPossibleSubject(subject: string): boolean {
  if (!isIdentifier(subject)) return false;
  if (!subject.toLowerCase().startsWith(SERVICE_ACCOUNT)) return true;
  const name = KUBERNETES.exec(subject)?.groups?.name;
  return name !== undefined && name.length <= MAX_SERVICE_ACCOUNT_NAME;
}

/** Its name, when the subject is a service account. */
export function serviceAccountOf(
  subject: string,
): { readonly namespace: string; readonly name: string } | undefined {
  const { namespace, name } = KUBERNETES.exec(subject)?.groups ?? {};
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}
