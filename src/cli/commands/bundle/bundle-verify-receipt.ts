/** `proofgate bundle verify-receipt`: verifies a revocation receipt offline, with the site's receipt key. */
import { verifyReceipt } from '../../../bundle/format/revocation-receipt.ts';
import { CliError } from '../../../process/program/errors.ts';
import { visibleText } from '../../../process/program/visible-text.ts';
import { requiredList, type SettingValues, text } from '../../../process/settings/settings.ts';
import { importPublicJwk } from '../../../protocol/import-public-key.ts';
import type { PublicKey } from '../../../protocol/public-key.ts';
import { formatTime } from '../../../protocol/rfc3339.ts';
import { isJsonObject, type JsonObject, jsonObjects } from '../../../protocol/strict-json.ts';
import { type CliContext, command } from '../../define/define-command.ts';

const SETTINGS = {
  receiptKeys: requiredList(
    text(
      '--receipt-key <file>',
      'public key (JWK or PEM) that may have signed it, or the JSON of `ctl get receipt-keys SITE --output json`',
    ),
  ),
};

const FAULTS = {
  receipt_malformed: 'the file holds no revocation receipt',
  receipt_type: 'it is signed as another kind of document, or with another algorithm',
  receipt_key_unknown:
    'none of the given keys signed it: get them with `proofgate ctl get receipt-keys SITE --output json`',
  receipt_signature_invalid: 'its signature is invalid: it was changed after it was signed',
  receipt_inconsistent: 'its state does not follow from its bound: do not rely on it',
} as const;

export const bundleVerifyReceiptCommand = command({
  name: 'verify-receipt',
  summary: 'Verify a revocation receipt offline; exit code 0 also for a pending one',
  positionals: { file: 'the compact JWS, or the JSON of `ctl get revocation-receipt --output json`' },
  settings: SETTINGS,
  examples: ['proofgate bundle verify-receipt receipt.json --receipt-key receipt-keys.json'],
  run: ({ settings, positionals }, context) => verify(positionals.file, settings, context),
});

async function verify(
  file: string,
  { receiptKeys }: SettingValues<typeof SETTINGS>,
  { output }: CliContext,
): Promise<void> {
  const keys = (await Promise.all(receiptKeys.map(keysIn))).flat();
  const verified = verifyReceipt(await receiptIn(file), keys);
  if (verified.kind === 'invalid') throw new CliError('refused', verified.fault, FAULTS[verified.fault]);
  const { receipt } = verified;
  const { auth_site, key_id, no_use_from, revision, state, targets, waiting_for } = receipt;
  const lines = [
    `state          ${state}`,
    `auth site      ${auth_site}`,
    `key            ${key_id}`,
    `revision       ${revision ?? '-'}`,
    `no use from    ${no_use_from === undefined ? '-' : formatTime(no_use_from)}`,
    `acknowledged   ${targets.filter((target) => target.has_revision).length} of ${targets.length} targets`,
    ...waiting_for.map(({ instance_id, target_id }) => `waiting for    ${target_id} instance ${instance_id}`),
  ];
  output.result(lines.map(visibleText), { ...receipt });
}

/** @throws CliError as `readPublicKeyFile` */
async function keysIn(file: string): Promise<readonly PublicKey[]> {
  const { readPublicKeyFile } = await import('../../../process/files/public-key-file.ts');
  const { readInputText } = await import('../../../process/files/input-files.ts');
  const listed = jsonObjects(membersOf(await readInputText(file, MAX_BYTES)).items);
  if (listed.length === 0) return [await readPublicKeyFile(file)];
  return listed.flatMap(({ jwk }) => importPublicJwk(jwk) ?? []);
}

const MAX_BYTES = 16 * 1024 * 1024;

async function receiptIn(file: string): Promise<string> {
  const { readFileOrInput } = await import('../../../process/files/input-files.ts');
  const trimmed = (await readFileOrInput(file, MAX_BYTES)).trim();
  const { receipt } = membersOf(trimmed);
  return typeof receipt === 'string' ? receipt : trimmed;
}

/** Of a JSON object; none of another text. */
function membersOf(content: string): JsonObject {
  try {
    const value: unknown = JSON.parse(content);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
