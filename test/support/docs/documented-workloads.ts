/** Reads docs/operate/workload.yaml with optional parts turned on. */
import { readText } from './markdown.ts';

export interface WorkloadChoices {
  /** Removes the marks `#|`. */
  readonly isCaPrivate?: boolean;
}

export function documentedWorkloads({ isCaPrivate = false }: WorkloadChoices = {}): string {
  const text = readText('docs/operate/workload.yaml');
  return isCaPrivate ? text.replace(/^( *)#\| /gm, '$1') : text;
}
