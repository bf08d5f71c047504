/** Runs the Go SDK's own tests. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { GO_ENV, MISSING_GO, PREPARE_TIMEOUT_MS } from '../../support/caller/sdk-drivers.ts';

const SDK = fileURLToPath(new URL('../../../sdk/go/', import.meta.url));
const itRuns = MISSING_GO === undefined ? it : it.skip;

itRuns(
  'passes its own tests, go vet and gofmt',
  () => {
    const run = (command: string, ...args: readonly string[]) => {
      const ended = spawnSync(command, args, { cwd: SDK, env: GO_ENV, encoding: 'utf8' });
      return `${ended.stdout}${ended.stderr}`;
    };
    expect(run('gofmt', '-l', '.')).toBe('');
    expect(run('go', 'vet', './...')).toBe('');
    expect(run('go', 'test', '-count=1', './...')).toMatch(/^ok /m);
  },
  PREPARE_TIMEOUT_MS,
);
