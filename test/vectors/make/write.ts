/** Writes the published files. Run by scripts/make-vectors.mjs. */
import { writeFileSync } from 'node:fs';
import { vectorFiles } from './files.ts';

for (const [name, text] of vectorFiles()) writeFileSync(new URL(`../${name}`, import.meta.url), text);
