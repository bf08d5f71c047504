/** `proofgate conformance`: sends the public conformance cases to a deployment, and reports what it does with them. */

import { PROOF_SETTING } from '../../caller/sign/proof-setting.ts';
import { usageError } from '../../process/program/errors.ts';
import {
  duration,
  optional,
  required,
  type SettingValues,
  text,
  withDefault,
} from '../../process/settings/settings.ts';
import type { CaseResult } from '../../tools/conformance/public-run.ts';
import { type CliContext, command } from '../define/define-command.ts';
import { CALLER_SETTINGS, SIGNING_SETTINGS } from '../signing/signing-inputs.ts';

const SETTINGS = {
  target: required(text('--target <url>', 'URL that the key may request; the API must answer below 400')),
  method: withDefault(text('--method <method>', 'method for --target, usually without a body'), 'GET'),
  writeTarget: optional(text('--write-target <url>', 'second URL, for cases with a body; never allowed')),
  writeMethod: withDefault(text('--write-method <method>', 'method for --write-target'), 'POST'),
  proof: PROOF_SETTING,
  ...CALLER_SETTINGS,
  key: required(text('--key <file>', 'private key, PKCS#8 PEM of mode 0600')),
  headers: SIGNING_SETTINGS.headers,
  timeoutMs: withDefault(
    duration('--timeout <duration>', 'for each answer, at most 1m', { maxMs: 60_000 }),
    '10s',
  ),
  caFile: optional(text('--ca-file <file>', "CA certificates (PEM), instead of the system's")),
  connectTo: optional(text('--connect-to <host:port>', "where to connect instead of the URL's host")),
};
type Values = SettingValues<typeof SETTINGS>;

export const conformanceCommand = command({
  name: 'conformance',
  summary: 'Check that a deployment denies what the verifier must deny',
  settings: SETTINGS,
  examples: [
    'proofgate conformance --target https://api.shop.example/v1/orders/7 --key /run/proofgate/key.pem',
    'proofgate conformance --target http://api.shop.example/v1/orders/7 --write-target http://api.shop.example/v1/orders --connect-to 127.0.0.1:10000 --key key.pem --profile-file profile.yaml --output json',
  ],
  run: ({ settings }, context) => checkDeployment(settings, context),
});

async function checkDeployment(settings: Values, { output }: CliContext): Promise<void> {
  const { openDeployment } = await import('../conformance/open-deployment.ts');
  const { runProtocol } = await import('../conformance/run-protocol.ts');
  const { showResults } = await import('../conformance/show-results.ts');
  if (settings.method === settings.writeMethod) {
    throw usageError('same_method', '--method and --write-method must differ');
  }
  const { deployment, protocols, url } = await openDeployment(settings);
  output.note(
    'requests_sent',
    `over ${protocols.join(' and ')} one request must be allowed, ${settings.method} ${url.origin}${url.target}; all others must be denied`,
  );
  const results: CaseResult[] = [];
  for (const protocol of protocols) results.push(...(await runProtocol(protocol, deployment, output)));
  showResults(results, protocols, output);
}
