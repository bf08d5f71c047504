/**
 * What a passport costs the broker, for each proof, beside a floor in the same run: one TLS handshake with a client certificate
 * and one signature. CPU is the server's whole process; requests a second are with eight callers, who share the machine.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request as httpsRequest } from 'node:https';
import { fileURLToPath } from 'node:url';
import { brokerText, credentialSha256 } from '../../src/protocol/broker-text.ts';
import { signMessage } from '../../src/protocol/signature.ts';
import { generateSigningKey, type SigningKey, signingKeyOf } from '../../src/protocol/signing.ts';
import { SpiffeAuthority } from '../../test/support/fakes/spiffe-authority.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';
import type { ServerJob } from './broker-server.ts';

const ROUNDS = Number(process.env.PROOFGATE_BENCH_ROUNDS ?? 7);
const REQUESTS_A_ROUND = Number(process.env.PROOFGATE_BENCH_PASSPORTS ?? 800);
const CALLERS = 8;
const BROKER_URL = 'https://broker.shop.example';
const TRUST_DOMAIN = 'shop.example';
const AUDIENCE = 'https://api.shop.example';

export const passports: Part = {
  name: 'passports',
  title: `one passport, ${ROUNDS} rounds of ${REQUESTS_A_ROUND} in turns, ${CALLERS} callers`,
  run: measure,
};

const authority = SpiffeAuthority.create(TRUST_DOMAIN);
const svid = authority.issueSvid('/orders');
const registered = generateSigningKey('Ed25519');
const holder = signingKeyOf(svid.privateKey);

interface Server {
  readonly child: ChildProcess;
  readonly port: number;
}

interface Way {
  readonly name: string;
  readonly server: 'broker' | 'floor';
  /** Whether each request makes a connection of its own. */
  readonly connects: boolean;
  /** Made before the clock starts; undefined for a challenge. */
  readonly proof: ((challenge: string) => object) | undefined;
}

const mtls = () => ({ kind: 'mtls' });
const WAYS: readonly Way[] = [
  { name: 'floor: handshake and signature', server: 'floor', connects: true, proof: mtls },
  { name: 'floor: signature, connection kept', server: 'floor', connects: false, proof: mtls },
  { name: 'mtls, a connection each', server: 'broker', connects: true, proof: mtls },
  { name: 'mtls, connection kept', server: 'broker', connects: false, proof: mtls },
  { name: 'signed_form, connection kept', server: 'broker', connects: false, proof: signedForm },
  { name: 'software_key, connection kept', server: 'broker', connects: false, proof: softwareKey },
  { name: 'a challenge, connection kept', server: 'broker', connects: false, proof: undefined },
];

async function measure(): Promise<PartResult> {
  const servers = { broker: await start('broker'), floor: await start('floor') };
  try {
    const costs = WAYS.map(() => ({ cpuUs: [] as number[], perSecond: [] as number[] }));
    // The first round warms up.
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [i, way] of WAYS.entries()) {
        const cost = await costOf(way, servers[way.server]);
        if (round === 0) continue;
        costs[i]?.cpuUs.push(cost.cpuUs);
        costs[i]?.perSecond.push(cost.perSecond);
      }
    }
    const cpuUs = (i: number) => median(costs[i]?.cpuUs ?? []);
    return {
      figures: [
        ...WAYS.map(({ name }, i) => figure(name, 'µs CPU', costs[i]?.cpuUs ?? [])),
        ...WAYS.map(({ name }, i) => figure(name, 'a second', costs[i]?.perSecond ?? [])),
      ],
      bounds: [{ name: 'mtls over handshake and signature', value: cpuUs(2) / cpuUs(0), atMost: 8 }],
    };
  } finally {
    for (const { child } of Object.values(servers)) child.disconnect();
  }
}

async function start(kind: ServerJob['kind']): Promise<Server> {
  const child = fork(fileURLToPath(new URL('broker-server.js', import.meta.url)));
  const job: ServerJob = {
    kind,
    brokerUrl: BROKER_URL,
    trustDomain: TRUST_DOMAIN,
    tls: authority.issueSvid('/broker').pem,
    signingKey: generateSigningKey('Ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    bundle: authority.bundleDocument(),
    softwareKeys: `keys: [{thumbprint: ${registered.publicKey.thumbprint}, subject: ci, trust_domain: ${TRUST_DOMAIN}}]`,
  };
  child.send(job);
  return { child, port: await reply(child) };
}

async function reply(child: ChildProcess): Promise<number> {
  const [value]: unknown[] = await once(child, 'message');
  if (typeof value !== 'number') throw new Error('the server says something else');
  return value;
}

async function cpuOf({ child }: Server): Promise<number> {
  child.send('cpu');
  return reply(child);
}

async function costOf({ connects, proof }: Way, server: Server) {
  const agent = new Agent({ keepAlive: !connects, maxSockets: CALLERS, maxCachedSessions: 0 });
  const challenge = await challengeOf(server, agent);
  const body = proof && JSON.stringify({ audience: AUDIENCE, proof: proof(challenge) });
  const path = proof === undefined ? '/v1/challenges' : '/v1/passports';
  const [startCpuUs, startMs] = [await cpuOf(server), performance.now()];
  let left = REQUESTS_A_ROUND;
  const caller = async () => {
    while (left-- > 0) await send(server, agent, path, body);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  const seconds = (performance.now() - startMs) / 1000;
  const cpuUs = ((await cpuOf(server)) - startCpuUs) / REQUESTS_A_ROUND;
  agent.destroy();
  return { cpuUs, perSecond: REQUESTS_A_ROUND / seconds };
}

async function challengeOf(server: Server, agent: Agent): Promise<string> {
  const { challenge }: { readonly challenge?: string } = JSON.parse(
    await send(server, agent, '/v1/challenges', undefined),
  );
  return challenge ?? '';
}

/** The whole answer; throws unless it is a 200. */
function send({ port }: Server, agent: Agent, path: string, body: string | undefined): Promise<string> {
  const headers =
    body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      agent,
      headers,
      ...svid.pem,
      ca: authority.pem,
    };
    const request = httpsRequest({ ...options, checkServerIdentity: () => undefined }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('end', () =>
        response.statusCode === 200 ? resolve(text) : reject(new Error(`${response.statusCode}: ${text}`)),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

function textOf(challenge: string, credential: Uint8Array | string, key: SigningKey): Buffer {
  return brokerText({
    operation: 'passport',
    brokerUrl: BROKER_URL,
    challenge,
    credentialSha256: credentialSha256(credential),
    holderThumbprint: key.publicKey.thumbprint,
    audience: AUDIENCE,
  });
}

function signed({ publicKey, privateKey }: SigningKey, text: Buffer): string {
  return signMessage(publicKey.algorithm, privateKey, text).toString('base64url');
}

function signedForm(challenge: string): object {
  const text = textOf(challenge, svid.chainDer[0] ?? '', registered);
  return {
    kind: 'signed_form',
    challenge,
    certificates: svid.chainDer.map((der) => der.toString('base64')),
    holder_jwk: registered.publicKey.jwk,
    svid_signature: signed(holder, text),
    holder_signature: signed(registered, text),
  };
}

function softwareKey(challenge: string): object {
  const text = textOf(challenge, registered.publicKey.thumbprint, registered);
  return {
    kind: 'software_key',
    challenge,
    registered_jwk: registered.publicKey.jwk,
    registered_signature: signed(registered, text),
  };
}
