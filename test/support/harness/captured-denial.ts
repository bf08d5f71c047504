/** Reads a file of `--capture-denied`. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitFor } from '../wait.ts';

/** The explanation in the one file of the directory, once it is written. */
export async function capturedExplanation(directory: string): Promise<unknown> {
  const name = await waitFor('the capture', async () =>
    (await readdir(directory)).find((each) => each.endsWith('.json')),
  );
  return JSON.parse(await readFile(join(directory, name), 'utf8')).explanation;
}
