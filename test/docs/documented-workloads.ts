/** docs/workload.yaml with the choices of a user. */
import { readText } from './markdown.ts';

export interface WorkloadChoices {
  /** Takes away the marks `#|`. */
  readonly isCaPrivate?: boolean;
}

export function documentedWorkloads({ isCaPrivate = false }: WorkloadChoices = {}): string {
  const text = readText('docs/workload.yaml');
  return isCaPrivate ? text.replace(/^( *)#\| /gm, '$1') : text;
}
