/**
 * Runs one session of pasted lines in a shell with its own processes, loopback, mounts and ports. Documented commands run
 * unchanged, beside other tests, and leave nothing behind. It needs Linux namespaces and skips without them.
 */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Block } from '../../support/docs/blocks.ts';
import { placeOf } from '../../support/docs/blocks.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import type { Session } from './sessions.ts';

export interface SessionPlan extends Session {
  /** Blocks in the order of pasting. */
  readonly blocks: readonly Block[];
  /** Files by path in the session's folder. */
  readonly files: ReadonlyMap<string, string>;
  /** Commands that run after the last block; their output is checked. */
  readonly commands: readonly string[];
}

export interface SessionRun {
  /** Output by location of a block, or by command. */
  readonly said: ReadonlyMap<string, string>;
  /** Failed commands of blocks, with the exit code: `3 proofgate request …`. */
  readonly failures: readonly string[];
  /** Whether the session reached its end. */
  readonly isWhole: boolean;
  /** All output, for debugging. */
  readonly transcript: string;
}

const TIMEOUT_MS = 500_000;
/** Prefix of lines about the session itself. */
const MARK = '\u001e';
const NAMESPACES = '--net --mount --pid --fork --kill-child --mount-proc'.split(' ');
const AS_ROOT = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];

/** The reason to skip; undefined when sessions can run. */
export function whyNoSession({ needs = [] }: Session): string | undefined {
  const missing = needs.find((file) => !existsSync(checkoutPath(file)));
  if (missing !== undefined) return `${missing} is not there`;
  const tried = spawnSync('unshare', [...AS_ROOT, ...NAMESPACES, 'ip', 'link', 'set', 'lo', 'up']);
  return tried.status === 0 ? undefined : 'no namespaces of one’s own here (unshare, ip)';
}

export async function runSession(plan: SessionPlan): Promise<SessionRun> {
  const folder = mkdtempSync(join(tmpdir(), 'pg-docs-'));
  try {
    // For servers that run as other users.
    chmodSync(folder, 0o755);
    for (const name of ['work', 'tmp', 'home']) mkdirSync(join(folder, name));
    for (const [path, text] of plan.files) {
      mkdirSync(dirname(join(folder, 'work', path)), { recursive: true });
      writeFileSync(join(folder, 'work', path), text);
    }
    writeFileSync(join(folder, 'session.sh'), scriptOf(plan));
    return readTranscript(await transcriptOf(folder));
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function scriptOf({
  after = '',
  before,
  beforeDocument = {},
  blocks,
  commands,
  reads = [],
}: SessionPlan): string {
  const lines = [
    'exec 2>&1 </dev/null; set -e',
    `. "$CHECKOUT/test/docs/sessions/world.sh"`,
    `mark() { printf '\\n${MARK}%s\\n' "$*"; }`,
    `mark before\n${before}\nset +e`,
    `trap 'mark "failed $? $BASH_COMMAND"' ERR`,
  ];
  let document = '';
  for (const block of blocks) {
    if (block.file !== document) lines.push(beforeDocument[block.file] ?? '');
    document = block.file;
    const text = reads.reduce((all, [from, to]) => all.replaceAll(from, () => to), block.text);
    lines.push(`mark 'of ${placeOf(block)}'\n${text}`);
  }
  lines.push(`mark after\n${after}\ntrap - ERR`);
  for (const command of commands) lines.push(`mark 'of ${command}'\n${command}`);
  return `${lines.join('\n')}\nmark end\n`;
}

/** Output of the shell and of all processes that it started. */
function transcriptOf(folder: string): Promise<string> {
  const { HOME: _home, ...environment } = process.env;
  const child = spawn('unshare', [...AS_ROOT, ...NAMESPACES, 'bash', join(folder, 'session.sh')], {
    cwd: join(folder, 'work'),
    env: {
      ...environment,
      ...{
        CHECKOUT: checkoutPath(),
        SESSION: folder,
        TMPDIR: join(folder, 'tmp'),
        HOME: join(folder, 'home'),
        // Cache of the big tools for `make`: a session has no network to install them.
        XDG_CACHE_HOME: environment.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
      },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString());
    });
  });
}

function readTranscript(transcript: string): SessionRun {
  const said = new Map<string, string>();
  const failures: string[] = [];
  let place = '';
  for (const part of transcript.split(`\n${MARK}`)) {
    const [head = '', ...rest] = part.split('\n');
    const [, failure] = /^failed (.*)$/.exec(head) ?? [];
    if (failure !== undefined) failures.push(failure);
    else place = head.replace(/^of /, '');
    said.set(place, (said.get(place) ?? '') + rest.join('\n'));
  }
  return { said, failures, isWhole: said.has('end'), transcript };
}
