/** `proofgate request`: signs and sends a request and shows the response, without exposing the passport to the user. */

import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { SignedRequest } from '../../caller/sign/request-signer.ts';
import type { RequestToSend, ResponseHead } from '../../caller/sign/send-request.ts';
import { CliError } from '../../process/program/errors.ts';
import {
  duration,
  optional,
  type SettingValues,
  text,
  toggle,
  withDefault,
} from '../../process/settings/settings.ts';
import { type CliContext, command } from '../define/define-command.ts';
import { parseConnectAddress } from '../signing/connect-address.ts';
import { SIGNING_POSITIONALS, SIGNING_SETTINGS, type SigningPositionals } from '../signing/signing-inputs.ts';

const MAX_TIMEOUT_MS = 3_600_000;

const SETTINGS = {
  ...SIGNING_SETTINGS,
  timeoutMs: withDefault(
    duration('--timeout <duration>', 'for the whole exchange, at most 1h', { maxMs: MAX_TIMEOUT_MS }),
    '30s',
  ),
  caFile: optional(text('--ca-file <file>', "CA certificates (PEM), instead of the system's")),
  connectTo: optional(text('--connect-to <host:port>', "where to connect instead of the URL's host")),
  include: toggle('--include', "print the answer's status and headers before its body", false),
};
type Values = SettingValues<typeof SETTINGS>;

export const requestCommand = command({
  name: 'request',
  summary: 'Sign one request, send it and show the answer',
  positionals: SIGNING_POSITIONALS,
  settings: SETTINGS,
  examples: [
    'proofgate request GET https://api.shop.example/v1/orders/7 --key /run/proofgate/key.pem',
    'proofgate request GET https://api.shop.example/v1/orders/7 --key key.pem --profile-file profile.yaml',
    'proofgate request GET https://api.shop.example/v1/orders/7 --broker-url https://broker.shop.example --spiffe-socket unix:/run/spire/agent.sock',
    'proofgate request GET http://api.shop.example/v1/orders/7 --connect-to 127.0.0.1:10000 --key key.pem --profile-file profile.yaml',
    'proofgate request POST https://api.shop.example/v1/orders --body-file - --header "Content-Type: application/json" --key key.pem --profile-file profile.yaml <order.json',
  ],
  run: ({ settings, positionals }, context) => request(settings, positionals, context),
});

async function request(
  settings: Values,
  positionals: SigningPositionals,
  context: CliContext,
): Promise<void> {
  const { sendRequest } = await import('../../caller/sign/send-request.ts');
  const { signFromSettings } = await import('../signing/signing-inputs.ts');
  const { showAnswer } = await import('../define/answer.ts');
  const { readCaFile } = await import('../../process/files/input-files.ts');
  const connectTo = parseConnectAddress(settings.connectTo);
  const caPem = await readCaFile(settings.caFile);
  const input = await signFromSettings(settings, positionals, context.env);
  const startMs = performance.now();
  const messageOf = ({ headers, method, url }: SignedRequest): RequestToSend => ({
    method,
    url,
    headers: [...input.request.headers.filter(({ name }) => !headers.replaces(name)), ...headers.reveal()],
    body: input.request.body,
    timeoutMs: Math.max(1, Math.ceil(settings.timeoutMs - (performance.now() - startMs))),
    caPem,
    connectTo,
  });
  const show = (head: ResponseHead, body: Readable, sentMs: number) =>
    showAnswer(head, body, { output: context.output, include: settings.include, sentMs });
  const sentMs = Date.now();
  const answer = await sendRequest(messageOf(input.signed), async (head, body) => {
    const again = input.signAgain(head);
    if (again === undefined) return { shown: await show(head, body, sentMs) };
    await finished(body.resume());
    return { again };
  });
  const { failure } =
    answer.again === undefined
      ? answer.shown
      : await sendRequest(messageOf(answer.again), (head, body) => show(head, body, Date.now()));
  if (failure !== undefined) throw new CliError('refused', failure.code, failure.text);
}
