/**
 * Measures the programs while idle: resident memory, the time from start to ready, and the size of the image. It runs the
 * image's files with its Node.js and its environment. The verifier uses a Redis that it has used before, because it fences a
 * new one for a while.
 */
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { HOME, NODE } from '../../scripts/image/contents.mjs';
import { FakeControl, POLICY } from '../../test/support/fakes/control-enrollment.ts';
import { TestRedisServer } from '../../test/support/harness/redis-server.ts';
import { type Service, startProofgate } from '../../test/support/harness/sidecar.ts';
import { type BuiltImage, builtImages, hasImageTools } from '../../test/support/image/built.ts';
import { useImageEnvironment } from '../environment.ts';
import { residentMib } from '../machine.ts';
import { type Bound, type Figure, figure, type Part, type PartResult } from '../report.ts';
import { siteArguments, startVerifier } from '../request-plane/servers.ts';
import { type SiteSize, writeSite } from '../request-plane/site.ts';
import { inWorkspace, type Workspace } from '../request-plane/workspace.ts';

const SIZES: readonly SiteSize[] = [
  { routes: 10, keys: 100 },
  { routes: 1_000, keys: 1_000 },
];
const STARTS = 7;
const PROCESSES = 3;
/** Long enough for V8 to notice that the process is idle and to release the memory that only startup needed. */
const IDLE_MS = 30_000;
const MIB = 1024 * 1024;
const MOST_RESIDENT_MIB = 90;
const MOST_READY_MS = 1_000;
const MOST_IMAGE_MIB = 120;

export const footprint: Part = {
  name: 'footprint',
  title: `start to ready, ${STARTS} starts; memory of ${PROCESSES} processes each, idle for ${IDLE_MS / 1000} s; the size of the image`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  if (!hasImageTools()) throw new Error('void run: make image-tools first');
  const { amd64: image } = await builtImages(['amd64']);
  workspace.started(useImage(image));
  const verifiers: Measured[] = [];
  for (const size of SIZES) verifiers.push(await measureVerifier(workspace, size));
  const measured = [
    ...verifiers,
    unbounded(await idleFigure('Control, without a site', () => startControl(workspace))),
    unbounded(await measureAgent(workspace)),
    sizeOf(image),
  ];
  return {
    figures: measured.flatMap(({ figures }) => figures),
    bounds: measured.flatMap(({ bounds }) => bounds),
  };
}

/** Whatever is started until it is stopped is the image's. */
function useImage({ root }: BuiltImage): Stoppable {
  return useImageEnvironment({
    PROOFGATE_TEST_NODE: join(root, NODE),
    PROOFGATE_TEST_PROGRAM: join(root, HOME, 'bin', 'proofgate'),
  });
}

interface Stoppable {
  stop(): Promise<void>;
}

interface Measured {
  readonly figures: readonly Figure[];
  readonly bounds: readonly Bound[];
}

function unbounded(figure: Figure): Measured {
  return { figures: [figure], bounds: [] };
}

/** Each site has a Redis of its own, which knows it: in one they would be two contents of one revision. */
async function measureVerifier(workspace: Workspace, size: SiteSize): Promise<Measured> {
  const redis = workspace.started(await TestRedisServer.start('--maxmemory-policy', 'noeviction'));
  const site = await writeSite(workspace.directory, size);
  const options = {
    site,
    source: siteArguments(site),
    replay: redis.url,
    workDirectory: workspace.directory,
  };
  const readyMs: number[] = [];
  // The first makes the store known, and the file system's cache warm: it does not count.
  for (let start = 0; start <= STARTS; start += 1) {
    const verifier = await startVerifier(options);
    if (start > 0) readyMs.push(verifier.readyAfterMs);
    await verifier.stop();
  }
  const name = `verifier, ${size.routes.toLocaleString('en')} routes, ${size.keys.toLocaleString('en')} keys`;
  const ready = figure(`${name}: start to ready`, 'ms', readyMs);
  const idle = await idleFigure(name, () => startVerifier(options));
  return {
    figures: [ready, idle],
    bounds: [
      { name: ready.name, value: ready.median, atMost: MOST_READY_MS },
      { name: idle.name, value: idle.median, atMost: MOST_RESIDENT_MIB },
    ],
  };
}

/** A figure of processes that are idle at the same time. */
async function idleFigure(
  name: string,
  start: (index: number) => Promise<Stoppable & { readonly pid: number }>,
): Promise<Figure> {
  const processes: (Stoppable & { readonly pid: number })[] = [];
  try {
    for (let index = 0; index < PROCESSES; index += 1) processes.push(await start(index));
    await pause(IDLE_MS);
    return figure(
      `${name}: idle`,
      'MiB',
      processes.map(({ pid }) => residentMib(pid)),
    );
  } finally {
    await Promise.all(processes.map((each) => each.stop()));
  }
}

/** A new Control on SQLite. */
async function startControl({ directory }: Workspace): Promise<Service> {
  const data = await mkdtemp(join(directory, 'control-'));
  return startProofgate(
    [
      'control',
      '--data-dir',
      data,
      '--public-url',
      'http://127.0.0.1:9193',
      '--listen',
      '127.0.0.1:0',
      '--admin-listen',
      '127.0.0.1:0',
    ],
    { readyUrl },
  );
}

/** An agent with a key, from a fake Control. */
async function measureAgent(workspace: Workspace): Promise<Figure> {
  const control = await FakeControl.start({});
  workspace.started({ stop: () => control.close() });
  return idleFigure('agent', async () => {
    const folder = await mkdtemp(join(workspace.directory, 'workload-'));
    await mkdir(join(folder, 'keys'));
    await writeFile(join(folder, 'token'), await control.token(), { mode: 0o600 });
    const files = [
      '--proof-file',
      join(folder, 'token'),
      '--private-key-out',
      join(folder, 'keys', 'key.pem'),
    ];
    const args = ['agent', '--control-url', control.url, '--policy', POLICY, ...files];
    return startProofgate([...args, '--admin-listen', '127.0.0.1:0'], {
      readyUrl,
    });
  });
}

function readyUrl(lines: readonly string[]): string | undefined {
  const line = lines.find((each) => each.includes('"admin_listen"'));
  return line === undefined ? undefined : `http://${JSON.parse(line).admin_listen}/readyz`;
}

function sizeOf({ files }: BuiltImage): Measured {
  const bytes = (isCounted: (path: string) => boolean) =>
    files.filter(({ path }) => isCounted(path)).reduce((sum, file) => sum + file.bytes, 0) / MIB;
  const withoutNode = bytes((path) => path !== NODE);
  const packages = `${HOME}/node_modules/`;
  return {
    figures: [
      figure('image, amd64: files without Node.js', 'MiB', [withoutNode]),
      figure('image: packages', 'MiB', [bytes((path) => path.startsWith(packages))]),
      figure('image: Node.js', 'MiB', [bytes((path) => path === NODE)]),
    ],
    bounds: [
      { name: 'image, amd64: files without Node.js, MiB', value: withoutNode, atMost: MOST_IMAGE_MIB },
    ],
  };
}
