/**
 * Fetches a broker's public keys from the operator's machine: its discovery document, then its key set. Private addresses
 * are allowed, because the operator chose the URL. Source: docs/operate/ctl.md "broker-keys", docs/operate/broker.md.
 */
import { Agent } from 'undici';
import { checkedCaPem } from '../../../process/files/ca-certificates.ts';
import { isLoopback } from '../../../protocol/loopback.ts';
import { isJsonObject, type JsonObject, parseStrictJson } from '../../../protocol/strict-json.ts';
import { OperatorError } from './operator-error.ts';

export interface BrokerLocation {
  /** Base URL of the broker, as Control keeps it. */
  readonly url: string;
  /** Issuer that the broker must name. */
  readonly issuer: string;
  /** Certificates (PEM) to trust instead of the system's. */
  readonly caPem: string | undefined;
}

const DISCOVERY_PATH = '/.well-known/proofgate-broker';
const MAX_ANSWER_BYTES = 256 * 1024;
const TIMEOUT_MS = 10_000;

/**
 * @returns the key set, still to be parsed
 * @throws OperatorError `broker_url_invalid`, `broker_unreachable`, `broker_answer_unexpected`, `broker_issuer_mismatch`
 */
export async function fetchBrokerKeySet({ url, issuer, caPem }: BrokerLocation): Promise<JsonObject> {
  const agent = new Agent({
    connections: 1,
    maxResponseSize: MAX_ANSWER_BYTES,
    connect: { rejectUnauthorized: true, ...(caPem === undefined ? {} : { ca: checkedCaPem(caPem) }) },
  });
  try {
    const discovery = await getJson(agent, fetchable(`${url}${DISCOVERY_PATH}`));
    // Another broker at this address must not become trusted as this one.
    if (discovery.issuer !== issuer) {
      const text = `the broker at ${url} is not ${issuer}: its discovery document names another issuer`;
      throw new OperatorError('refused', 'broker_issuer_mismatch', text);
    }
    return await getJson(agent, keySetUrl(discovery, url));
  } finally {
    await agent.destroy();
  }
}

function keySetUrl({ jwks_uri: text }: JsonObject, url: string): URL {
  if (typeof text === 'string' && URL.canParse(text) && new URL(text).origin === new URL(url).origin) {
    return fetchable(text);
  }
  throw unexpected(url, 'its jwks_uri is not on the same origin');
}

/** Plain HTTP on loopback only. Control checks URLs too, but it may not be trusted with what an operator connects to. */
function fetchable(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSecure = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  if (url !== undefined && isSecure && url.username === '' && url.password === '') return url;
  throw new OperatorError(
    'usage',
    'broker_url_invalid',
    "the broker's url must be https://, or http:// on loopback",
  );
}

async function getJson(dispatcher: Agent, url: URL): Promise<JsonObject> {
  const { statusCode, text } = await exchange(dispatcher, url);
  // Redirects are not followed: the keys come from the URL that the operator reviewed.
  if (statusCode !== 200) throw unexpected(url.href, `status ${statusCode}`);
  const value = parsed(text);
  if (isJsonObject(value)) return value;
  throw unexpected(url.href, 'not a JSON object');
}

async function exchange(dispatcher: Agent, url: URL) {
  try {
    const { statusCode, body } = await dispatcher.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'GET',
      headers: { accept: 'application/json, application/jwk-set+json' },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { statusCode, text: await body.text() };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
    const trust = /CERT|SIGN|UNABLE/.test(code)
      ? ': its certificate is not trusted; see --broker-ca-file'
      : '';
    const message = `the broker does not answer at ${url.href} (${code})${trust}`;
    throw new OperatorError('unreachable', 'broker_unreachable', message);
  }
}

function parsed(text: string): unknown {
  try {
    return parseStrictJson(text);
  } catch {
    return undefined;
  }
}

function unexpected(url: string, why: string): OperatorError {
  const text = `what answers at ${url} is no broker (${why}): check the broker's url at Control`;
  return new OperatorError('unreachable', 'broker_answer_unexpected', text);
}
