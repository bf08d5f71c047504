/** Validates a policy's subject: without it, a typing error would show only when a workload fails to enroll. */
import { isIdentifier } from '../../protocol/identifiers.ts';

const SERVICE_ACCOUNT = 'system:serviceaccount:';
/** RFC 1123 labels; a service account's name may have several, joined by dots. */
const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?';
const KUBERNETES = new RegExp(`^${SERVICE_ACCOUNT}(?<namespace>${LABEL}):(?<name>${LABEL}(?:\\.${LABEL})*)$`);
const MAX_SERVICE_ACCOUNT_NAME = 253;

/** Subjects compare exactly; there are no patterns. A `*` in what looks like a service account is thus a mistake. */
export function isPossibleSubject(subject: string): boolean {
  if (!isIdentifier(subject)) return false;
  if (!subject.toLowerCase().startsWith(SERVICE_ACCOUNT)) return true;
  const name = KUBERNETES.exec(subject)?.groups?.name;
  return name !== undefined && name.length <= MAX_SERVICE_ACCOUNT_NAME;
}

/** Namespace and name, when the subject is a service account. */
export function serviceAccountOf(
  subject: string,
): { readonly namespace: string; readonly name: string } | undefined {
  const { namespace, name } = KUBERNETES.exec(subject)?.groups ?? {};
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}
