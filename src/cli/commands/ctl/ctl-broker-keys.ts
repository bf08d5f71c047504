/** `proofgate ctl broker-keys refresh`: pins the keys that a broker publishes, after the operator has seen them. */

import { readCaFile, readInputText } from '../../../process/files/input-files.ts';
import { CliError, usageError } from '../../../process/program/errors.ts';
import {
  list,
  optional,
  required,
  type SettingValues,
  text,
  toggle,
} from '../../../process/settings/settings.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../../protocol/strict-json.ts';
import type { BrokerKey, KeyComparison, PinnedEntry } from '../../ctl/client/broker-keys.ts';
import type { ControlApi, Schemas } from '../../ctl/client/control-api.ts';
import { type CtlResult, ctlCommand } from '../../ctl/ctl-connection.ts';
import { type CliContext, group } from '../../define/define-command.ts';

const SETTINGS = {
  site: required(text('--site <site>', 'Auth Site')),
  issuer: required(text('--issuer <url>', "the broker's issuer, exactly")),
  trustDomain: optional(
    text('--trust-domain <domain>', 'which of the brokers of this issuer, when there are several'),
  ),
  brokerCaFile: optional(text('--broker-ca-file <file>', "CA certificates (PEM), instead of the system's")),
  jwksFile: optional(
    text('--jwks-file <file>', "key set to pin (RFC 7517), instead of the one at the broker's url"),
  ),
  thumbprints: list(
    text('--thumbprint <thumbprint>', 'pin only if the added keys are exactly the ones named; repeatable'),
  ),
  yes: toggle('--yes', 'pin the keys; otherwise they are only shown', false),
};
type Values = SettingValues<typeof SETTINGS>;

const MAX_KEY_SET_BYTES = 256 * 1024;

const refreshCommand = ctlCommand({
  name: 'refresh',
  summary: "Fetch a broker's keys from this machine, show what differs from the pinned ones, and pin them",
  settings: SETTINGS,
  examples: [
    'broker-keys refresh --site shop-eu-1 --issuer https://broker.shop.example',
    'broker-keys refresh --site shop-eu-1 --issuer https://broker.shop.example --yes',
  ],
  run: (api, { settings }, context) => refresh(api, settings, context),
});

export const ctlBrokerKeysCommands = group('broker-keys', 'Pinned keys of brokers', [refreshCommand]);

async function refresh(api: ControlApi, values: Values, { output }: CliContext): Promise<CtlResult> {
  const { compareKeys, readBrokerKeySet } = await import('../../ctl/client/broker-keys.ts');
  const broker = await findBroker(api, values);
  const keySet = await readKeySet(values, broker);
  const { trustDomain, isOnly } = broker;
  const comparison = compareKeys(broker.pinned, readBrokerKeySet(keySet, trustDomain, isOnly));
  requireExpected(comparison, values.thumbprints);
  const isChange = comparison.added.length + comparison.removed.length > 0;
  const object = {
    site_id: values.site,
    issuer: values.issuer,
    trust_domain: trustDomain,
    ...shownKeys(comparison),
    pinned: isChange && values.yes,
  };
  const lines = linesOf(comparison);
  if (!isChange) return { lines: [...lines, 'nothing to do'], object };
  if (comparison.kept.length === 0 && broker.pinned.length > 0) output.note('no_key_stays', NO_KEY_STAYS);
  if (!values.yes) {
    output.note('not_pinned', NOT_PINNED);
    return { lines, object };
  }
  const { definition, url } = broker.view;
  await api.put(broker.template, {
    path: { site_id: values.site, issuer: values.issuer, trust_domain: trustDomain },
    body: { definition: { ...definition, keys: [...comparison.entries] }, url },
    etag: broker.etag,
  });
  return { lines: [...lines, 'pinned'], object };
}

const NOT_PINNED =
  'nothing is changed: compare the added thumbprints with those that the broker printed, then add --yes';
const NO_KEY_STAYS =
  'warning: no pinned key stays. Verifiers reject the passports that the removed keys signed; rotate with an overlap instead';

const BROKER = '/v1/sites/{site_id}/brokers/{issuer}/{trust_domain}';
/** Names the only broker of an issuer, as Control up to 0.3.0 does. */
const ONLY_BROKER = '/v1/sites/{site_id}/brokers/{issuer}';

interface FoundBroker {
  readonly view: Schemas['Broker'];
  readonly etag: string | undefined;
  readonly template: typeof BROKER | typeof ONLY_BROKER;
  readonly trustDomain: string;
  /** Whether the site has no other broker of the issuer. */
  readonly isOnly: boolean;
  readonly pinned: readonly PinnedEntry[];
}

/** @throws CliError `broker_unknown`, `trust_domain_required` */
async function findBroker(api: ControlApi, { site, issuer, trustDomain }: Values): Promise<FoundBroker> {
  const brokers = await api.list('/v1/sites/{site_id}/brokers', { path: { site_id: site } });
  const ofIssuer = brokers.filter((each) => each.issuer === issuer);
  const fitting = ofIssuer.filter((each) => trustDomain === undefined || domainOf(each) === trustDomain);
  const [found, another] = fitting;
  if (found === undefined) {
    const what = `${issuer}${trustDomain === undefined ? '' : ` for ${trustDomain}`}`;
    const advice = 'declare it in the site file and apply that first';
    throw new CliError('refused', 'broker_unknown', `the site has no broker ${what}: ${advice}`);
  }
  if (another !== undefined) {
    const domains = fitting.map(domainOf).join(', ');
    throw usageError('trust_domain_required', `name one with --trust-domain: ${domains}`);
  }
  const domain = domainOf(found);
  const template = found.published === undefined ? ONLY_BROKER : BROKER;
  const path = { site_id: site, issuer, trust_domain: domain };
  const { body: view, etag } = await api.get(template, { path });
  const isOnly = ofIssuer.length === 1;
  return { view, etag, template, trustDomain: domain, isOnly, pinned: view.definition.keys ?? [] };
}

function domainOf({ definition }: Schemas['Broker']): string {
  return definition.trust_domain;
}

/** @throws CliError, OperatorError */
async function readKeySet(values: Values, { view }: FoundBroker): Promise<JsonObject> {
  if (values.jwksFile !== undefined) return readKeySetFile(values.jwksFile);
  const { url } = view;
  if (url === undefined) {
    const text = 'the broker has no url at Control: add it to the site file, or pin a --jwks-file';
    throw usageError('broker_url_missing', text);
  }
  const { fetchBrokerKeySet } = await import('../../ctl/client/fetch-broker-keys.ts');
  return fetchBrokerKeySet({ url, issuer: values.issuer, caPem: await readCaFile(values.brokerCaFile) });
}

async function readKeySetFile(file: string): Promise<JsonObject> {
  const content = await readInputText(file, MAX_KEY_SET_BYTES);
  try {
    const value = parseStrictJson(content);
    if (isJsonObject(value)) return value;
  } catch {
    // Falls through: one error for both.
  }
  throw usageError('jwks_file_invalid', `${file} is no key set: a JSON object with keys (RFC 7517)`);
}

/** What the broker publishes can change between the look and --yes. @throws CliError `broker_keys_unexpected` */
function requireExpected({ added }: KeyComparison, expected: readonly string[]): void {
  if (expected.length === 0) return;
  const thumbprints = added.map(({ publicKey }) => publicKey.thumbprint);
  const isSame =
    thumbprints.length === new Set(expected).size && thumbprints.every((one) => expected.includes(one));
  if (isSame) return;
  const found = thumbprints.length === 0 ? 'none' : thumbprints.join(', ');
  throw new CliError(
    'refused',
    'broker_keys_unexpected',
    `the added keys are not those of --thumbprint: ${found}`,
  );
}

function shownKeys({ added, removed, kept }: KeyComparison) {
  const shown = (keys: readonly BrokerKey[]) =>
    keys.map(({ kid, publicKey: { algorithm, thumbprint } }) => ({ kid, alg: algorithm, thumbprint }));
  return { added: shown(added), removed: shown(removed), kept: shown(kept) };
}

function linesOf({ added, removed, kept }: KeyComparison): readonly string[] {
  const marked = (mark: string, keys: readonly BrokerKey[]) =>
    keys.map(
      ({ kid, publicKey: { algorithm, thumbprint } }) => `${mark} ${thumbprint}  ${algorithm}  ${kid}`,
    );
  return [...marked('+', added), ...marked('-', removed), ...marked(' ', kept)];
}
