/** Checks the text of the Dockerfile without a container engine. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { LAUNCHER, NODE, PROGRAM_LINK, USER } from '../../scripts/image/contents.mjs';
import { copiedBy, parseDockerfile, parseDockerignore, type Step } from '../../scripts/image/dockerfile.mjs';
import { codesIn, readText } from '../support/docs/markdown.ts';
import { checkoutPath } from '../support/harness/checkout.ts';

const { args, stages } = parseDockerfile(readText('Dockerfile'));
const isIgnored = parseDockerignore(readText('.dockerignore'));
const [runtime, build, image] = stages;

function stepsOf(stage: typeof image, instruction: string): readonly Step[] {
  return (stage?.steps ?? []).filter((step) => step.instruction === instruction);
}

/** The script that a `RUN` calls. */
const scripts = stepsOf(build, 'RUN').map(({ text }) => text.split(' ', 1)[0] ?? '');
const copies = stepsOf(build, 'COPY').flatMap((step) => copiedBy(step).sources);

describe('stages', () => {
  it('are the base, what builds from it, and an image with nothing of either but what is laid out', () => {
    expect(stages.map(({ base, name }) => [base, name])).toEqual([
      ['$NODE_IMAGE', 'runtime'],
      ['$NODE_IMAGE', 'build'],
      ['scratch', undefined],
    ]);
  });

  it('take one base, which a digest can be given for, of Node.js 22', () => {
    expect(args).toEqual([expect.stringMatching(/^NODE_IMAGE=node:22-[a-z]+-slim$/)]);
  });

  it('build with the processor of the builder, for any: nothing of the other one is run', () => {
    expect([runtime?.platform, build?.platform]).toEqual([undefined, '$BUILDPLATFORM']);
    expect(runtime?.steps).toEqual([]);
    expect(stepsOf(image, 'RUN')).toEqual([]);
  });
});

describe('steps', () => {
  it('are scripts, each of them there, executable and copied before it is called', () => {
    expect(scripts).toEqual([
      'scripts/image/compile.sh',
      'scripts/image/install-production.sh',
      'scripts/image/lay-out.mjs',
    ]);
    for (const script of scripts) {
      expect(statSync(checkoutPath(script)).mode & 0o111).toBe(0o111);
      expect(copies.some((source) => script.startsWith(`${source}/`))).toBe(true);
    }
  });

  it('install what the lock file says, and run no script of a package', () => {
    const installs = scripts.flatMap((script) => readText(script).match(/^npm .*$/gm) ?? []);
    expect(installs).toHaveLength(2);
    for (const install of installs) expect(install).toMatch(/^npm ci .*--ignore-scripts\b/);
    expect(installs[1]).toContain('--omit=dev');
  });

  it('mount the base where they look for it, and put the root where the image takes it from', () => {
    const layOut = stepsOf(build, 'RUN').at(-1);
    expect(layOut?.flags.mount).toBe('type=bind,from=runtime,target=/runtime');
    expect(layOut?.text).toContain('--runtime=/runtime --out=/image');
    const [copy, ...others] = stepsOf(image, 'COPY');
    expect([copy?.flags.from, copy?.text, others.length]).toEqual(['build', '/image/ /', 0]);
  });

  it('get the time of all files', () => {
    const declared = stepsOf(build, 'ARG').map(({ text }) => text.split('=', 1)[0]);
    expect(declared).toEqual(['TARGETARCH', 'SOURCE_DATE_EPOCH']);
  });
});

describe('the context', () => {
  it.each(copies)('has %s, and does not ignore it', (source) => {
    expect(existsSync(checkoutPath(source))).toBe(true);
    expect(isIgnored(source)).toBe(false);
  });

  it('has nothing else', () => {
    const others = [
      'node_modules',
      '.git',
      '.cache',
      '.build',
      'test',
      'docs',
      'scripts/release',
      'demo',
      'x.pem',
    ];
    expect(others.filter((path) => !isIgnored(path))).toEqual([]);
    const kept = readText('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'));
    expect(kept.map((line) => line.slice(1)).toSorted()).toEqual([...new Set(copies)].toSorted());
  });
});

describe('what runs', () => {
  const only = (instruction: string) => {
    const [step, ...others] = stepsOf(image, instruction);
    expect(others).toEqual([]);
    return step;
  };

  it('is a user by number, who is not root', () => {
    expect(only('USER')?.text).toBe(`${USER.id}:${USER.id}`);
    expect(USER.id).toBeGreaterThan(0);
  });

  it('is the program, started without a shell, and says by default what it can', () => {
    expect(only('ENTRYPOINT')?.exec).toEqual([`/${PROGRAM_LINK.path}`]);
    expect(only('CMD')?.exec).toEqual(['--help']);
  });

  it('is on the path, with node', () => {
    expect(only('ENV')?.text.split(' ')[0]).toBe('PATH=/usr/local/bin');
    expect([NODE, PROGRAM_LINK.path]).toEqual(['usr/local/bin/node', 'usr/local/bin/proofgate']);
    expect(LAUNCHER.firstLine).toBe(`#!/${NODE}`);
  });

  it('has one arena of memory, which gives large pieces back', () => {
    expect(only('ENV')?.text.split(' ').slice(1)).toEqual([
      'MALLOC_ARENA_MAX=1',
      'MALLOC_MMAP_THRESHOLD_=131072',
    ]);
  });
});

it('documented arguments of a build are arguments', () => {
  const documented =
    readFileSync(checkoutPath('docs/operate/image.md'), 'utf8').match(/--build-arg "?([A-Z_]+)=/g) ?? [];
  const known = [...args, ...stepsOf(build, 'ARG').map(({ text }) => text)].map(
    (text) => text.split('=', 1)[0],
  );
  expect(documented.length).toBeGreaterThan(1);
  for (const text of documented) expect(known).toContain(/([A-Z_]+)=/.exec(text)?.[1]);
  expect(codesIn(readText('docs/operate/image.md'))).toContain('NODE_IMAGE');
});

it('an instruction that is not known is refused, and so is one before the first stage', () => {
  expect(() => parseDockerfile('FROM scratch\nADD a b')).toThrow(
    expect.objectContaining({ code: 'dockerfile_instruction' }),
  );
  expect(() => parseDockerfile('USER 1\nFROM scratch')).toThrow(
    expect.objectContaining({ code: 'dockerfile_order' }),
  );
});
