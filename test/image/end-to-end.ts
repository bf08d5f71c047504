/**
 * Runs the end-to-end suite with the image's program, in its own root, instead of the checkout's. `make test-extended` runs a
 * part of it, `make test-image` all.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { HOME, NODE } from '../../scripts/image/contents.mjs';
import { checkoutPath } from '../support/harness/checkout.ts';
import type { BuiltImage } from '../support/image/built.ts';
import { containerCommand } from '../support/image/container.ts';
import { IS_WHOLE } from './describe-image.ts';

const SOME = ['test/e2e/outcomes.test', 'test/e2e/control/agent', 'test/helm/processes'];
const ALL = ['test/e2e/', 'test/helm/'];
/** Its fake clock is a preloaded library that the image does not have. */
const NEEDS_MORE = ['test/e2e/replay/clock-jumps'];
const TIMEOUT_MS = IS_WHOLE ? 3_600_000 : 600_000;

export function endToEndTests(image: () => BuiltImage): void {
  const folder = mkdtempSync(join(tmpdir(), 'pg-image-node-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it(
    IS_WHOLE ? 'passes the end-to-end suite' : 'passes some of the end-to-end suite',
    async () => {
      const node = join(folder, 'node');
      writeFileSync(node, nodeInRoot(image()));
      chmodSync(node, 0o755);
      const { output, status } = await jest(IS_WHOLE ? ALL : SOME, {
        // The root does not have this machine's certificates.
        NODE_EXTRA_CA_CERTS: undefined,
        PROOFGATE_TEST_NODE: node,
        PROOFGATE_TEST_LANE: undefined,
        PROOFGATE_TEST_RESULTS: undefined,
        PROOFGATE_TEST_PROGRAM: `/${HOME}/bin/proofgate`,
      });
      if (status !== 0) throw new Error(output);
      const [, passed, failed] = /^(\d+) passed, (\d+) failed/m.exec(output) ?? [];
      expect({ failed: Number(failed), some: Number(passed) > 20 }).toEqual({ failed: 0, some: true });
    },
    TIMEOUT_MS,
  );
}

/** Tests share files with the program in the folder for temporary files. The program runs as root, as the tests do. */
function nodeInRoot(image: BuiltImage): string {
  const command = containerCommand(image, [tmpdir()], 0).map((word) => `'${word}'`);
  return `#!/bin/sh\nexec ${command.join(' ')} /${NODE} "$@"\n`;
}

function jest(
  patterns: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly status: number | null; readonly output: string }> {
  const which = ['--testPathIgnorePatterns', ...NEEDS_MORE, '--testPathPatterns', ...patterns];
  const child = spawn('npm', ['run', '--silent', 'jest', '--', ...which], {
    cwd: checkoutPath(),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, output })));
}
