/** A low-level client of the ext_authz service, which also sends raw bytes. */
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';
import type { CheckRequest } from '../../../src/process/ext-authz/request-messages.ts';
import type { CheckResponse } from '../../../src/process/ext-authz/response-messages.ts';
import { loadPackageDefinition } from '../../../src/process/ext-authz/service.ts';
import { remainingMs } from '../wait.ts';

const definition = loadPackageDefinition();
const PACKAGE = 'envoy.service.auth.v3';
const requestType = definition[`${PACKAGE}.CheckRequest`] as MessageTypeDefinition<CheckRequest, object>;
const responseType = definition[`${PACKAGE}.CheckResponse`] as MessageTypeDefinition<object, CheckResponse>;
export const CHECK_PATH = `/${PACKAGE}.Authorization/Check`;

export const encodeCheckRequest = (request: CheckRequest): Buffer => requestType.serialize(request);
export const decodeCheckResponse = (bytes: Buffer): CheckResponse => responseType.deserialize(bytes);

export interface CheckClient {
  /** Rejects with a ServiceError where the RPC is not OK. */
  check(request: CheckRequest): Promise<CheckResponse>;
  checkBytes(request: Buffer): Promise<CheckResponse>;
  /** Any unary method, bytes in and out. */
  call(path: string, request: Buffer): Promise<Buffer>;
  /** The first answer of a stream. */
  stream(path: string, request: Buffer): Promise<Buffer>;
  close(): void;
}

const asItIs = (bytes: Buffer): Buffer => bytes;
/** A call to a process that was killed meanwhile has no other end. */
const DEADLINE_MS = 30_000;
const deadline = () => ({ deadline: Date.now() + Math.min(DEADLINE_MS, remainingMs(DEADLINE_MS)) });

export function openCheckClient(address: string): CheckClient {
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.max_send_message_length': -1,
    'grpc.use_local_subchannel_pool': 1,
  });
  const call = (path: string, request: Buffer) =>
    new Promise<Buffer>((resolve, reject) => {
      client.makeUnaryRequest(path, asItIs, asItIs, request, deadline(), (error, answer) => {
        if (error !== null || answer === undefined) reject(error ?? new Error('no answer'));
        else resolve(answer);
      });
    });
  const checkBytes = async (request: Buffer) => decodeCheckResponse(await call(CHECK_PATH, request));
  return {
    call,
    checkBytes,
    check: (request) => checkBytes(encodeCheckRequest(request)),
    stream: (path, request) =>
      new Promise((resolve, reject) => {
        const stream = client.makeBidiStreamRequest(path, asItIs, asItIs, deadline());
        stream.once('error', reject);
        stream.once('data', resolve);
        stream.end(request);
      }),
    close: () => client.close(),
  };
}

/** Name of the code that an RPC failed with; `OK` when it did not. */
export async function rpcCode(rpc: Promise<unknown>): Promise<string> {
  try {
    await rpc;
    return 'OK';
  } catch (error) {
    return status[(error as ServiceError).code] ?? 'none';
  }
}

/** `allowed`, or `reason/detail status` of a denial. */
export function outcomeOfResponse({ denied_response, ok_response, status }: CheckResponse): string {
  if (status?.code === 0 && ok_response !== undefined && denied_response === undefined) return 'allowed';
  if (status === undefined || status.code === 0 || denied_response === undefined) return 'neither';
  const problem: { readonly reason: string; readonly detail?: string } = JSON.parse(denied_response.body);
  const detail = problem.detail === undefined ? '' : `/${problem.detail}`;
  return `${problem.reason}${detail} ${denied_response.status.code}`;
}
