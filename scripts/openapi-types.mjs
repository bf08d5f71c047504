/**
 * Writes the TypeScript types of Control's API from docs/reference/openapi.json to .build/openapi.d.ts. The console and `ctl` call the
 * API by them.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import openapiTypescript, { astToString } from 'openapi-typescript';

const document = JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8'));
mkdirSync('.build', { recursive: true });
// A member of a request that has a default may be left out.
const types = await openapiTypescript(document, { defaultNonNullable: false });
// Written atomically, so that a concurrent compiler reads the old or the new text.
const written = `.build/openapi.d.ts.${process.pid}`;
writeFileSync(written, astToString(types));
renameSync(written, '.build/openapi.d.ts');
