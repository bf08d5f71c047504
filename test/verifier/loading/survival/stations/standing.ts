/** A verifier's bundle that has taken the whole chain, and the ways for further documents to come to it. */
import { appendFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BundleLoader } from '../../../../../src/verifier/loading/bundle-loader.ts';
import { newDirectory } from '../../../../support/bundle/bundle-directory.ts';
import type { MisusedStep } from '../misuse.ts';
import { type SignedChain, TARGETS } from '../signed-chain.ts';
import { asText, ControlScript, stepsUpTo } from './control-script.ts';
import { startFollower } from './control-station.ts';
import { newWriter } from './directory-station.ts';
import { HostileControl } from './hostile-control.ts';
import { baseOf, newStateDirectory, withStarted } from './state-station.ts';
import { newLoader } from './station.ts';

export interface Standing {
  /** Each resolves when the verifier has processed the document. */
  whole(bytes: Buffer): Promise<BundleLoader>;
  step(step: Pick<MisusedStep, 'bytes' | 'kind' | 'revision'>): Promise<BundleLoader>;
  statement(bytes: Buffer): Promise<BundleLoader>;
  close(): Promise<void>;
}

const STEP_FILES = ['delta-3.jws', 'link-4.jws'] as const;

export async function standingByDirectory(chain: SignedChain): Promise<Standing> {
  const directory = await newDirectory();
  const put = newWriter(directory);
  for (const name of TARGETS) await put(name, chain.documents[name]);
  const loader = newLoader(chain, { stateDirectory: await newDirectory(), directory });
  await loader.start();
  const look = async () => {
    await loader.reload();
    return loader;
  };
  /** It stays until the next document: a watching loader forgets the problem of a file that is gone. */
  let lastStep: string | undefined;
  const removeLastStep = async () => {
    if (lastStep !== undefined) await rm(join(directory, lastStep));
    lastStep = undefined;
  };
  return {
    async whole(bytes) {
      await removeLastStep();
      for (const name of STEP_FILES) await rm(join(directory, name), { force: true });
      await put('bundle.jws', bytes);
      return look();
    },
    async step({ bytes, kind, revision }) {
      await removeLastStep();
      lastStep = `${kind}-${revision}.jws`;
      await put(lastStep, bytes);
      return look();
    },
    async statement(bytes) {
      await put('freshness.jws', bytes);
      return look();
    },
    close: async () => loader.close(),
  };
}

export async function standingByControl(chain: SignedChain): Promise<Standing> {
  const control = await HostileControl.start();
  const { loader, stop } = await startFollower(chain, control.url, await newDirectory());
  const script = new ControlScript(chain, control);
  await control.say(script.leadTo('link-4.jws', chain.end));
  await loader.offerStatement(chain.documents['freshness.jws']);
  const documents = new Map(TARGETS.map((name) => [name, chain.documents[name]]));
  const said = async (...args: Parameters<HostileControl['say']>) => {
    await control.say(...args);
    return loader;
  };
  return {
    whole: (bytes) => said(script.offer(new Map(documents).set('bundle.jws', bytes), 'bundle.jws')),
    step({ bytes, kind, revision }) {
      const step = { kind, revision, document: asText(bytes) };
      const steps = [...stepsUpTo(documents, 'link-4.jws'), step];
      return said(script.stepThenWhole(documents, [step], steps));
    },
    statement: (bytes) => said(script.offer(new Map(documents).set('freshness.jws', bytes), 'freshness.jws')),
    async close() {
      await stop();
      await control.close();
    },
  };
}

/** Each document is found at a start of its own. */
export async function standingByState(chain: SignedChain): Promise<Standing> {
  const started = async (change: (base: string) => Promise<void>) => {
    const stateDirectory = await newStateDirectory(chain);
    await change(await baseOf(stateDirectory));
    return withStarted(chain, { stateDirectory }, (loader) => loader);
  };
  return {
    whole: (bytes) =>
      started(async (base) => {
        await truncate(join(base, 'steps.jsonl'));
        await writeFile(join(base, 'bundle.jws'), bytes);
      }),
    step: ({ bytes }) => started((base) => appendFile(join(base, 'steps.jsonl'), bytes)),
    statement: (bytes) => started((base) => writeFile(join(base, 'freshness.jws'), bytes)),
    close: async () => undefined,
  };
}
