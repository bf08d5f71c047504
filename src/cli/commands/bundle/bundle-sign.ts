/** `proofgate bundle sign`: signs a bundle source file and writes the signed documents to a directory. */
import { basename } from 'node:path';
import { optional, required, type SettingValues, text } from '../../../process/settings/settings.ts';
import {
  readSigningKeys,
  readTrustedSigners,
  SIGNING_KEYS,
  TRUSTED_SIGNERS,
} from '../../bundle/bundle-flags.ts';
import { type CliContext, command } from '../../define/define-command.ts';

const SETTINGS = {
  ...SIGNING_KEYS,
  out: required(text('--out <directory>', 'where to write the documents; made when missing')),
  previous: optional(text('--previous <directory>', 'where the bundle before is; may be the same')),
  ...TRUSTED_SIGNERS,
};

export const bundleSignCommand = command({
  name: 'sign',
  summary: 'Sign a bundle that is written in YAML',
  positionals: { file: 'bundle in YAML' },
  settings: SETTINGS,
  examples: [
    'proofgate bundle sign bundle.yaml --key signer.pem --out bundle',
    'proofgate bundle sign bundle.yaml --key signer.pem --previous bundle --out bundle',
  ],
  run: ({ settings, positionals }, context) => signFile(positionals.file, settings, context),
});

const MAX_YAML_BYTES = 64 * 1024 * 1024;

async function signFile(
  file: string,
  settings: SettingValues<typeof SETTINGS>,
  { output }: CliContext,
): Promise<void> {
  const { signBundle } = await import('../../../bundle/authoring/authoring.ts');
  const { readInputText } = await import('../../../process/files/input-files.ts');
  const { out } = settings;
  const { revision, head } = await signBundle({
    yamlText: await readInputText(file, MAX_YAML_BYTES),
    fileName: basename(file),
    signingKeys: await readSigningKeys(settings.keys),
    trusted: await readTrustedSigners(settings),
    previousDirectory: settings.previous,
    outDirectory: out,
    nowSeconds: Math.floor(Date.now() / 1000),
  });
  output.result([`revision ${revision}, head ${head}, in ${out}`], { revision, head, directory: out });
}
