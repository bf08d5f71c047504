/** `proofgate ctl signing-keys`: writes the public keys that a site's verifiers must pin, as key files. */
import { join } from 'node:path';
import { replaceFile } from '../../../process/files/output-files.ts';
import { CliError } from '../../../process/program/errors.ts';
import { optional, required, type SettingValues, text } from '../../../process/settings/settings.ts';
import { importPublicJwk } from '../../../protocol/import-public-key.ts';
import type { ControlApi, Schemas } from '../../ctl/client/control-api.ts';
import { type CtlResult, ctlCommand } from '../../ctl/ctl-connection.ts';

const SETTINGS = {
  site: required(text('--site <site>', 'Auth Site')),
  outDir: optional(
    text('--out-dir <directory>', 'write them there: bundle-<n>.jwk.json, freshness-<n>.jwk.json'),
  ),
};

export const ctlSigningKeysCommand = ctlCommand({
  name: 'signing-keys',
  summary: "Show or write the public keys that a site's verifiers pin (--bundle-key, --freshness-key)",
  settings: SETTINGS,
  examples: ['signing-keys --site shop-eu-1 --out-dir keys'],
  run: (api, { settings }) => showSigningKeys(api, settings),
});

async function showSigningKeys(
  api: ControlApi,
  { outDir, site }: SettingValues<typeof SETTINGS>,
): Promise<CtlResult> {
  const listed = await api.page('/v1/sites/{site_id}/signing-keys', { path: { site_id: site } });
  const keys = listed.filter(({ state }) => state !== 'retired');
  const pins = pinsOf(keys);
  if (outDir !== undefined) {
    for (const { file, jwk } of pins) {
      const path = join(outDir, file);
      await replaceFile({ path, content: `${JSON.stringify(jwk)}\n`, mode: 0o644 });
    }
  }
  const lines = pins.map(({ file, thumbprint, state, id }) => `${file}  ${thumbprint}  ${state}  ${id}`);
  return { lines, object: { keys } };
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
function pinsOf(keys: readonly Schemas['SigningKey'][]): readonly Pin[] {
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
