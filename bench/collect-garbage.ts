import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: unknown = runInNewContext('gc');

/** Collects the garbage so far, so that it is not collected while this process measures. */
export function collectGarbage(): void {
  if (typeof collect === 'function') collect();
}
