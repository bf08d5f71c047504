/** Targets beside the subject's. */
import type { Subject } from '../wire/conformance-case.ts';

/** With another last segment of the path. */
export function otherPath({ target }: Pick<Subject, 'target'>): string {
  const [path = '', ...query] = target.split('?');
  return [`${path}2`, ...query].join('?');
}

export function otherQuery({ target }: Pick<Subject, 'target'>): string {
  return `${target}${target.includes('?') ? '&' : '?'}more=1`;
}
