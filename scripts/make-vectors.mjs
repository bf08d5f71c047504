/** Writes test/vectors/*.json from the cases in test/support/cases/. A test fails when they are out of date. */
import { register } from 'node:module';

register(new URL('../test/support/harness/typescript-hooks.mjs', import.meta.url));
await import('../test/vectors/make/write.ts');
