/** Writes test/vectors/*.json from the cases in test/vectors/make/ and test/verifier/. A test says when it must be run again. */
import { register } from 'node:module';

register(new URL('../test/fakes/typescript-hooks.mjs', import.meta.url));
await import('../test/vectors/make/write.ts');
