/** HTTP and HTTPS servers on loopback that record their requests. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

interface SeenRequest {
  readonly method: string;
  readonly target: string;
  /** Alternating names and values, as sent. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export type Answer = (seen: SeenRequest, response: ServerResponse, socket: Socket) => void;

export interface LocalServer {
  readonly port: number;
  readonly seen: readonly SeenRequest[];
  close(): Promise<void>;
}

export interface TlsIdentity {
  readonly keyPem: string;
  readonly certificatePem: string;
}

/** @param identity plain HTTP when undefined */
export async function startServer(answer: Answer, identity?: TlsIdentity): Promise<LocalServer> {
  const seen: SeenRequest[] = [];
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const { method = '', url = '', rawHeaders, headers } = request;
    const entry = { method, target: url, rawHeaders, headers, body: Buffer.concat(chunks) };
    seen.push(entry);
    answer(entry, response, request.socket);
  };
  const server =
    identity === undefined
      ? createServer(listener)
      : createTlsServer({ key: identity.keyPem, cert: identity.certificatePem }, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: portOf(server), seen, close: () => closeServer(server) };
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return address.port;
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

/** A key and a self-signed certificate for one name, valid from 2020 to 2049. */
export function selfSignedIdentity(dnsName: string): TlsIdentity {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = certificateDer(dnsName, privateKey, publicKey.export({ type: 'spki', format: 'der' }));
  const lines = certificate.toString('base64').replace(/(.{64})/g, '$1\n');
  return {
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificatePem: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

/** A minimal certificate (RFC 5280 section 4.1). */
function certificateDer(dnsName: string, privateKey: KeyObject, spki: Buffer): Buffer {
  const ecdsaWithSha256 = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));
  const commonName = der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from(dnsName)));
  const name = der(0x30, der(0x31, commonName));
  const validity = der(0x30, utcTime('200101000000Z'), utcTime('491231235959Z'));
  const alternativeName = der(0x30, der(0x82, Buffer.from(dnsName)));
  const extension = der(0x30, Buffer.from('0603551d11', 'hex'), der(0x04, alternativeName));
  const toBeSigned = der(
    0x30,
    der(0xa0, Buffer.from('020102', 'hex')),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    validity,
    name,
    spki,
    der(0xa3, der(0x30, extension)),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', toBeSigned, privateKey));
  return der(0x30, toBeSigned, ecdsaWithSha256, signature);
}

function utcTime(text: string): Buffer {
  return der(0x17, Buffer.from(text));
}

/** Tag, length, content (X.690 section 8.1). */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head = length < 128 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
}
