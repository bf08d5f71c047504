/** All targets, by name; each is loaded on demand, so that a run loads only what it needs. */
import type { FuzzTarget } from './target.ts';

export const TARGETS = {
  'check-request': async () => (await import('./targets/check-request.ts')).checkRequestTarget,
  passport: async () => (await import('./targets/passport.ts')).passportTarget,
  transcript: async () => (await import('./targets/transcript.ts')).transcriptTarget,
  dpop: async () => (await import('./targets/dpop.ts')).dpopTarget,
  bundle: async () => (await import('./targets/bundle.ts')).bundleTarget,
  path: async () => (await import('./targets/path.ts')).pathTarget,
} as const satisfies { readonly [name: string]: () => Promise<FuzzTarget> };

export type TargetName = keyof typeof TARGETS;
export const TARGET_NAMES = Object.keys(TARGETS) as readonly TargetName[];
