/** `proofgate ctl signing-keys`: writes the public keys that a site's verifiers must pin, as key files. */
import { join } from 'node:path';
import { sitePath } from '../../../client/operator/paths.ts';
import { CliError } from '../../../program/errors.ts';
import { replaceFile } from '../../../program/output-files.ts';
import { optional, required, type SettingValues, text } from '../../../program/settings.ts';
import { importPublicJwk } from '../../../protocol/import-public-key.ts';
import { isJsonObject, type JsonObject } from '../../../protocol/strict-json.ts';
import { CTL_SETTINGS, withControl } from '../../ctl/ctl-connection.ts';
import { type CliContext, command } from '../../define-command.ts';

const SETTINGS = {
  ...CTL_SETTINGS,
  site: required(text('--site <site>', 'Auth Site')),
  outDir: optional(
    text('--out-dir <directory>', 'write them there: bundle-<n>.jwk.json, freshness-<n>.jwk.json'),
  ),
};

export const ctlSigningKeysCommand = command({
  name: 'signing-keys',
  summary: "Show or write the public keys that a site's verifiers pin (--bundle-key, --freshness-key)",
  settings: SETTINGS,
  examples: [
    'proofgate ctl signing-keys --site shop-eu-1 --out-dir keys --control-url https://control.example --token-file token',
  ],
  run: ({ settings }, context) => showSigningKeys(settings, context),
});

async function showSigningKeys(values: SettingValues<typeof SETTINGS>, context: CliContext): Promise<void> {
  const { output } = context;
  await withControl(values, context, async (api) => {
    // This list is short and has no pagination.
    const { body } = await api.get(`${sitePath(values.site)}/signing-keys`);
    if (!Array.isArray(body.items)) throw unexpectedAnswer();
    const keys = body.items.filter(isJsonObject).filter(({ state }) => state !== 'retired');
    const pins = pinsOf(keys);
    if (values.outDir !== undefined) {
      for (const { file, jwk } of pins) {
        const path = join(values.outDir, file);
        await replaceFile({ path, content: `${JSON.stringify(jwk)}\n`, mode: 0o644 });
      }
    }
    output.result(
      pins.map(({ file, thumbprint, state, id }) => `${file}  ${thumbprint}  ${state}  ${id}`),
      { keys },
    );
  });
}

/** A key to pin, with the thumbprint that people compare. */
interface Pin {
  readonly file: string;
  readonly jwk: object;
  /** RFC 7638 thumbprint, computed from the key that is written. */
  readonly thumbprint: string;
  readonly state: string;
  /** Control's ID of the key. */
  readonly id: string;
}

/** @throws CliError `answer_unexpected` unless each item is a valid key that matches Control's ID */
function pinsOf(keys: readonly JsonObject[]): readonly Pin[] {
  const counts = new Map<string, number>();
  return keys.map(({ jwk, purpose, thumbprint, state, signing_key_id: id }) => {
    const key = importPublicJwk(jwk);
    const isOurs = (purpose === 'bundle' || purpose === 'freshness') && key?.thumbprint === thumbprint;
    if (key === undefined || !isOurs || !isWord(state) || !isWord(id)) throw unexpectedAnswer();
    const number = (counts.get(purpose) ?? 0) + 1;
    counts.set(purpose, number);
    return { file: `${purpose}-${number}.jwk.json`, jwk: key.jwk, thumbprint: key.thumbprint, state, id };
  });
}

/** Removes control characters, which could send commands to a terminal. */
function isWord(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z0-9_]{1,128}$/.test(value);
}

function unexpectedAnswer(): CliError {
  return new CliError('unreachable', 'answer_unexpected', 'the list of keys is not what Control answers');
}
