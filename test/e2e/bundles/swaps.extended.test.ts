/**
 * Republishes a volume as Kubernetes does it, again and again, while a verifier answers requests from it: every answer is of
 * one whole revision. `PROOFGATE_TEST_SWAPS` sets the number of swaps (`make soak`).
 */
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { signFreshness, signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import { makeShards } from '../../../src/bundle/compile/key-shards.ts';
import type { ChainPosition } from '../../../src/bundle/format/chain.ts';
import { formatTime } from '../../../src/protocol/rfc3339.ts';
import { AUTH_SITE } from '../../support/fixtures/bundle-content.ts';
import { waitFor } from '../../support/wait.ts';
import { type CallerKeys, contentOf, newCallerKeys, nowSeconds, turnOf } from './generations.ts';
import { faultOfAnswer, judge, type Published, ServedOrder, type Verdict } from './judge.ts';
import { RequestLoad } from './request-load.ts';
import { RequestSigner } from './requests.ts';
import { type RunningVerifier, startVerifier } from './verifier-process.ts';

const SWAPS = Number(process.env.PROOFGATE_TEST_SWAPS ?? 100);
const TIMEOUT_MS = 300_000 + SWAPS * 300;
/** Of each so many swaps one is waited for: the others may be overtaken by the next. */
const AWAITED_EVERY = 4;
const MOST_PAUSE_MS = 30;

/** A volume as the kubelet writes it: files are links into `..data`, which is a link to the version. */
class Volume {
  readonly path: string;
  readonly published = new Map<number, Published>();
  readonly #keys: CallerKeys;
  #last: ChainPosition | undefined;
  #version: string | undefined;

  constructor(path: string, keys: CallerKeys) {
    this.path = path;
    this.#keys = keys;
  }

  /** The next revision; the version before is gone when this returns. */
  async publish(): Promise<number> {
    const revision = (this.#last?.revision ?? 0) + 1;
    const files = this.#signed(revision);
    const version = `..2026_11_21_${revision}`;
    await mkdir(join(this.path, version), { recursive: true });
    for (const [name, bytes] of files) await writeFile(join(this.path, version, name), bytes);
    if (this.#version === undefined) {
      for (const name of files.keys()) await symlink(join('..data', name), join(this.path, name));
    }
    await symlink(version, join(this.path, '..data_tmp'));
    await rename(join(this.path, '..data_tmp'), join(this.path, '..data'));
    if (this.#version !== undefined) await rm(join(this.path, this.#version), { recursive: true });
    this.#version = version;
    return revision;
  }

  /** Every other whole bundle has its keys in a shard of its own. */
  #signed(revision: number): ReadonlyMap<string, Buffer> {
    const generation = { generation: revision, turnKey: turnOf(revision) };
    const { derived_keys: derivedKeys = [], ...content } = contentOf(this.#keys, generation);
    const shards = makeShards(derivedKeys);
    const previous = this.#last === undefined ? {} : { previous_head: this.#last.head };
    const placed = { ...content, ...previous, revision, key_shards: shards.map(({ entry }) => entry) };
    const { document, position } = signWholeBundle(placed, [this.#keys.bundle]);
    this.#last = position;
    this.published.set(revision, { ...generation, head: position.head });
    const statement = { auth_site: AUTH_SITE, ...position, as_of: formatTime(nowSeconds()) };
    return new Map([
      ['bundle.jws', document],
      ['freshness.jws', signFreshness(statement, [this.#keys.bundle])],
      ...shards.map(({ bytes, entry }) => [entry.file, bytes] as const),
    ]);
  }
}

describe(`${SWAPS} swaps of ..data under load`, () => {
  const keys = newCallerKeys();
  const load = new RequestLoad(new RequestSigner(keys));
  let folder: string;
  let volume: Volume;
  let verifier: RunningVerifier;
  let verdict: Verdict;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pg-swaps-'));
    volume = new Volume(join(folder, 'volume'), keys);
    await mkdir(join(folder, 'state'));
    await writeFile(join(folder, 'key.jwk.json'), JSON.stringify(keys.bundle.publicKey.jwk));
    await volume.publish();
    verifier = await startVerifier({ args: argumentsIn(folder), replay: 'memory' });
    load.pointTo(verifier.address);
    load.start();
    await swapAndWait();
    await load.stop();
    await verifier.child.stop();
    verdict = await judge(join(folder, 'audit.jsonl'), load.answers, volume.published);
    const { allowed, decisions, revisionsServed } = verdict;
    const figures = { swaps: SWAPS, decisions, allowed, revisionsServed, findings: verdict.findings.length };
    process.stdout.write(`swaps: ${JSON.stringify(figures)}\n`);
  }, TIMEOUT_MS);
  afterAll(async () => {
    await load.stop();
    await verifier?.child.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function swapAndWait(): Promise<void> {
    for (let swap = 1; swap <= SWAPS; swap++) {
      const revision = await volume.publish();
      if (swap % AWAITED_EVERY === 0 || swap === SWAPS) {
        const isServed = () => (load.highestRevision >= revision ? true : undefined);
        await waitFor(`revision ${revision} to be served`, isServed);
      } else {
        await sleep(Math.random() * MOST_PAUSE_MS);
      }
    }
  }

  it('every answer is of one whole revision, and none of an older one than the answer before', () => {
    expect(verdict.findings).toEqual([]);
    expect(load.failures).toEqual([]);
  });

  it('the load met many revisions, and the last one is served', () => {
    expect(load.highestRevision).toBe(SWAPS + 1);
    expect(verdict.revisionsServed).toBeGreaterThan(SWAPS / AWAITED_EVERY);
    expect(verdict.allowed).toBeGreaterThan(verdict.decisions / 4);
    expect(load.answers.size).toBeGreaterThan(2 * SWAPS);
  });

  it('nothing was refused for what is in it: only files that were gone already', () => {
    const refusals = verifier.child.stderrLines.filter((line) => /"code":"(?!file_)/.test(line));
    expect(refusals).toEqual([]);
  });

  it('the check itself finds a mix', () => {
    const event = { bundle_revision: 4, outcome: 'allowed', reason: undefined } as const;
    const even = { generation: 4, turnKey: 'even', head: '' } as const;
    const allowed = { outcome: 'allowed', revision: 4, verifier: 1 };
    expect(faultOfAnswer({ ...allowed, kind: 'client_even' }, event, even)).toBeUndefined();
    expect(faultOfAnswer({ ...allowed, kind: 'client_odd' }, event, even)).toMatch(/not source_subject/);
    expect(faultOfAnswer({ ...allowed, kind: 'key_odd' }, event, even)).toMatch(/not invalid_request_proof/);
    expect(faultOfAnswer({ ...allowed, kind: 'paired', revision: 3 }, event, even)).toMatch(/answered as 3/);
    const denied = {
      outcome: 'context_mismatch 403',
      revision: undefined,
      kind: 'paired',
      verifier: 1,
    } as const;
    const refusal = { bundle_revision: 4, outcome: 'denied', reason: 'context_mismatch' } as const;
    expect(faultOfAnswer(denied, refusal, even)).toMatch(/not passes/);
  });

  it('the check itself finds an older revision', () => {
    const order = new ServedOrder();
    const denied = (bundle_revision: number) =>
      ({ bundle_revision, outcome: 'denied', reason: 'source_subject_mismatch' }) as const;
    const allowed = (bundle_revision: number) => ({ bundle_revision, outcome: 'allowed' }) as const;
    expect(order.add(denied(4), { verifier: 1 })).toBeUndefined();
    expect(order.add(allowed(3), { verifier: 1 })).toBeUndefined();
    expect(order.add(denied(3), { verifier: 1 })).toBe('revision 3 after 4');
    expect(order.add(allowed(3), { verifier: 2 })).toBe('revision 3, though one before served 4');
  });
});

function argumentsIn(folder: string): readonly string[] {
  return [
    ...['--auth-site', AUTH_SITE, '--bundle', join(folder, 'volume'), '--state-dir', join(folder, 'state')],
    ...['--bundle-key', join(folder, 'key.jwk.json'), '--audit', 'required'],
    ...['--audit-file', join(folder, 'audit.jsonl'), '--log-level', 'info'],
  ];
}
