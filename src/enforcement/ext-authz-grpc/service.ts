/** The service as described in `proto/`, loaded once. */
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { decodeCheckRequest } from './decode-check-request.ts';
import type { CheckRequest, CheckResponse } from './messages.ts';
import type { ResponseSerializers } from './response-encoder.ts';

export const AUTHORIZATION_SERVICE = 'envoy.service.auth.v3.Authorization';
export const CHECK_PATH = `/${AUTHORIZATION_SERVICE}/Check`;

const PROTO_DIRECTORY = fileURLToPath(new URL('../../../proto', import.meta.url));

/** Absent fields stay absent: nothing is allocated for what a request does not hold. */
const LOADER_OPTIONS = { keepCase: true, longs: Number, defaults: false, includeDirs: [PROTO_DIRECTORY] };

export function loadPackageDefinition(): PackageDefinition {
  return loadSync('envoy/service/auth/v3/authorization.proto', LOADER_OPTIONS);
}

/** A request that could not be decoded; it is answered like one that leads to no route. */
export const UNREADABLE: CheckRequest = {};

/** The library's encoder of CheckRequest: what Envoy sends, for whoever plays Envoy. */
export function requestSerializer(definition: PackageDefinition): (request: CheckRequest) => Buffer {
  return checkMethod(definition).requestSerialize;
}

export function responseSerializers(definition: PackageDefinition): ResponseSerializers {
  return { checkResponse: checkMethod(definition).responseSerialize };
}

/**
 * The service, except for two things. Bytes which are no CheckRequest reach the handler as
 * {@link UNREADABLE}: grpc-js would answer them with an RPC error, which Envoy turns into an allow under
 * `failure_mode_allow`. And answers come encoded from `check-response.ts`.
 */
export function authorizationService(definition: PackageDefinition): ServiceDefinition {
  const check = checkMethod(definition);
  const requestDeserialize = (bytes: Buffer): CheckRequest => {
    try {
      return decodeCheckRequest(bytes);
    } catch {
      return UNREADABLE;
    }
  };
  const responseSerialize = (encoded: Buffer): Buffer => encoded;
  return { Check: { ...check, requestDeserialize, responseSerialize } };
}

function checkMethod(definition: PackageDefinition): MethodDefinition<CheckRequest, CheckResponse> {
  const service = definition[AUTHORIZATION_SERVICE] as ServiceDefinition;
  return service.Check as MethodDefinition<CheckRequest, CheckResponse>;
}
