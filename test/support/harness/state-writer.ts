/**
 * A process that loads a bundle from a directory and then deltas into a state directory. It prints one `used <revision>` line
 * on standard output as soon as a revision is in use. Tests watch its system calls.
 */
import { writeSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signDelta, signWholeBundle } from '../../../src/bundle/authoring/publishing-documents.ts';
import { BundleLoader } from '../../../src/verifier/loading/bundle-loader.ts';
import { FileMark } from '../../../src/verifier/loading/state/high-water-mark.ts';
import { PersistedBundle } from '../../../src/verifier/loading/state/persisted-bundle.ts';
import { deltaAfter } from '../bundle/deltas.ts';
import { AUTH_SITE, bundleContent, NOW_SECONDS, newTestKeys } from '../fixtures/bundle-content.ts';
import { scriptSettings } from './run-typescript.ts';

export interface StateWriterSettings {
  readonly stateDirectory: string;
  readonly bundleDirectory: string;
  readonly deltas: number;
}

const { bundleDirectory, deltas, stateDirectory } = scriptSettings<StateWriterSettings>();
const keys = newTestKeys();
const signers = { keys: [keys.bundle.publicKey], threshold: 1 };
const persisted = new PersistedBundle(stateDirectory);
const use = ({ revision }: { readonly revision: number }) => void writeSync(1, `used ${revision}\n`);
const loader = new BundleLoader({
  authSite: AUTH_SITE,
  directory: bundleDirectory,
  persisted,
  bundleSigners: signers,
  freshnessSigners: signers,
  mark: new FileMark({ stateDirectory, authSite: AUTH_SITE }),
  nowSeconds: () => NOW_SECONDS,
  listener: { loaded: use, advanced: use },
});
const whole = signWholeBundle(bundleContent(keys), [keys.bundle]);
await writeFile(join(bundleDirectory, 'bundle.jws'), whole.document);
await loader.start();
let { position } = whole;
for (let count = 0; count < deltas; count += 1) {
  const next = signDelta(deltaAfter(position, {}), [keys.bundle]);
  position = next.position;
  const file = `delta-${position.revision}.jws`;
  const refused = await loader.advance([{ kind: 'delta', file, bytes: next.document }]);
  if (refused !== undefined) throw refused;
}
loader.close();
await persisted.close();
