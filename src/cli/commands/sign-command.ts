/** `proofgate sign`: prints the headers of one signed request, for another program to send. */

import type { CredentialHeaders } from '../../caller/sign/credential-headers.ts';
import type { SignedRequest } from '../../caller/sign/request-signer.ts';
import { usageError } from '../../process/program/errors.ts';
import { choice, required, type SettingValues, text, withDefault } from '../../process/settings/settings.ts';
import { formatTime } from '../../protocol/rfc3339.ts';
import { type CliContext, command } from '../define/define-command.ts';
import { SIGNING_POSITIONALS, SIGNING_SETTINGS, type SigningPositionals } from '../signing/signing-inputs.ts';

const SETTINGS = {
  ...SIGNING_SETTINGS,
  out: required(text('--out <file>', 'where to put the headers, mode 0600; - prints them')),
  format: withDefault(choice('--format <format>', 'what to write', ['headers', 'json']), 'headers'),
};
type Values = SettingValues<typeof SETTINGS>;

export const signCommand = command({
  name: 'sign',
  summary: 'Sign one request and write its headers to a file',
  positionals: SIGNING_POSITIONALS,
  settings: SETTINGS,
  examples: [
    'proofgate sign GET https://api.shop.example/v1/orders/7 --key /run/proofgate/key.pem --out headers.txt',
    'proofgate sign GET https://api.shop.example/v1/orders/7 --key key.pem --profile-file profile.yaml --out headers.txt',
    'proofgate sign GET https://api.shop.example/v1/orders/7 --broker-url https://broker.shop.example --spiffe-socket unix:/run/spire/agent.sock --out headers.txt',
    'curl -H @headers.txt https://api.shop.example/v1/orders/7',
    'proofgate sign POST https://api.shop.example/v1/orders --body-file order.json --key key.pem --profile-file profile.yaml --out - --format json',
  ],
  run: ({ settings, positionals }, context) => sign(settings, positionals, context),
});

async function sign(settings: Values, positionals: SigningPositionals, context: CliContext): Promise<void> {
  const { signFromSettings } = await import('../signing/signing-inputs.ts');
  const { request, signed } = await signFromSettings(settings, positionals, context.env);
  for (const { name } of request.headers) refuseUnsigned(name, signed);
  await deliver(settings, signed, context);
}

/** Rejects a header that is not signed, because it would have no effect although the user expects one. */
function refuseUnsigned(name: string, signed: SignedRequest): void {
  if (signed.signedHeaderNames.includes(name.toLowerCase())) return;
  throw usageError(
    'header_not_signed',
    `the route does not sign ${name}: add --sign-header, or leave it out`,
  );
}

async function deliver(settings: Values, signed: SignedRequest, { output }: CliContext): Promise<void> {
  const content = formatCredentials(signed.headers, settings.format);
  if (settings.out === '-') {
    output.stdout.write(content);
    return;
  }
  const { replaceFile } = await import('../../process/files/output-files.ts');
  await replaceFile({ path: settings.out, content, mode: 0o600 });
  const expiresAt = formatTime(signed.expiresAtSeconds);
  output.result([`signed for route ${signed.routeId}, good until ${expiresAt}: ${settings.out}`], {
    out: settings.out,
    route_id: signed.routeId,
    key_id: signed.keyId,
    signed_headers: signed.signedHeaderNames,
    issued_at: signed.issuedAtSeconds,
    expires_at: signed.expiresAtSeconds,
  });
}

/** Both output formats end with a line break. */
function formatCredentials(credentials: CredentialHeaders, format: Values['format']): string {
  const lines = credentials.reveal();
  return format === 'json'
    ? `${JSON.stringify(Object.fromEntries(lines.map(({ name, value }) => [name, value])))}\n`
    : lines.map(({ name, value }) => `${name}: ${value}\n`).join('');
}
