/** Access levels of grants and routes. */

export const ACCESS_LEVELS = ['read', 'write'] as const;
export type Access = (typeof ACCESS_LEVELS)[number];

/**
 * Whether a grant gives the access that a route needs: write includes read.
 * @param granted undefined without a grant
 */
export function grantCovers(granted: Access | undefined, needed: Access): boolean {
  return granted === 'write' || (granted === 'read' && needed === 'read');
}

const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Access level that a route requires if it names none. */
export function accessOfMethod(method: string): Access {
  return READING_METHODS.has(method) ? 'read' : 'write';
}
