import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: unknown = runInNewContext('gc');

/** What this process has allocated so far is not collected while it measures. */
export function collectGarbage(): void {
  if (typeof collect === 'function') collect();
}
