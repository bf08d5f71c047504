/** Loads the service definition from `proto/`. */
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { decodeCheckRequest } from './decode-check-request.ts';
import type { CheckRequest } from './request-messages.ts';
import type { CheckResponse, ResponseSerializers } from './response-messages.ts';

export const AUTHORIZATION_SERVICE = 'envoy.service.auth.v3.Authorization';
export const CHECK_PATH = `/${AUTHORIZATION_SERVICE}/Check`;

const PROTO_DIRECTORY = fileURLToPath(new URL('../../../proto', import.meta.url));

/** Absent fields stay absent, so that nothing is allocated for them. */
const LOADER_OPTIONS = { keepCase: true, longs: Number, defaults: false, includeDirs: [PROTO_DIRECTORY] };

export function loadPackageDefinition(): PackageDefinition {
  return loadSync('envoy/service/auth/v3/authorization.proto', LOADER_OPTIONS);
}

/** Replaces a request that could not be decoded; it is denied like one that matches no route. */
export const UNREADABLE: CheckRequest = {};

/** The library's CheckRequest serializer, for clients that act as Envoy. */
export function requestSerializer(definition: PackageDefinition): (request: CheckRequest) => Buffer {
  return checkMethod(definition).requestSerialize;
}

export function responseSerializers(definition: PackageDefinition): ResponseSerializers {
  return { checkResponse: checkMethod(definition).responseSerialize };
}

/**
 * The service definition with two changes. Bytes that are not a CheckRequest reach the handler as {@link UNREADABLE}:
 * grpc-js would answer them with an RPC error, which Envoy turns into an allow under `failure_mode_allow`. And
 * responses arrive already encoded.
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
