/** An ext_authz server that records Envoy's Checks and answers as configured, to test Envoy's behavior. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type ServiceError, status } from '@grpc/grpc-js';
import { type AnyDefinition, loadSync, type ServiceDefinition } from '@grpc/proto-loader';
import { checkoutPath } from './checkout.ts';
import type { VerifierAddress } from './envoy-config.ts';

interface HeaderEntry {
  readonly key: string;
  readonly value: string;
  readonly raw_value: Buffer;
}

export interface CheckedHttp {
  readonly id: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly path: string;
  readonly host: string;
  readonly scheme: string;
  readonly query: string;
  readonly fragment: string;
  readonly size: number;
  readonly protocol: string;
  readonly body: Buffer;
  readonly raw_body: Buffer;
  readonly header_map?: { readonly headers: readonly HeaderEntry[] };
}

export interface CheckMessage {
  readonly attributes: {
    readonly source: {
      readonly address: {
        readonly socket_address?: { readonly address: string; readonly port_value: number };
      };
      readonly principal: string;
      readonly certificate: string;
    };
    readonly request: { readonly http: CheckedHttp };
    readonly context_extensions: Readonly<Record<string, string>>;
  };
}

/** A CheckResponse as proto-loader writes it; only the parts that a test sets. */
export interface CheckAnswer {
  readonly status: { readonly code: number };
  readonly ok_response?: {
    readonly headers?: readonly HeaderOption[];
    readonly headers_to_remove?: readonly string[];
  };
  readonly denied_response?: {
    readonly status: { readonly code: number };
    readonly headers?: readonly HeaderOption[];
    readonly body?: string;
  };
  readonly dynamic_metadata?: unknown;
}

export interface HeaderOption {
  readonly header: { readonly key: string; readonly value: string };
  readonly append?: { readonly value: boolean };
  readonly append_action?: 'APPEND_IF_EXISTS_OR_ADD' | 'OVERWRITE_IF_EXISTS_OR_ADD';
}

/**
 * `silence` never answers; `fault` is an RPC error. An allow gets a decision ID, which the shipped configuration asks for, unless it
 * has no `ok_response`.
 */
type AuthzBehaviour = CheckAnswer | 'silence' | 'fault';

export const allow: CheckAnswer = { status: { code: status.OK }, ok_response: {} };

export interface RecordingAuthz {
  readonly address: VerifierAddress;
  readonly checks: readonly CheckMessage[];
  /** How it answers from now on. */
  behave(behaviour: AuthzBehaviour): void;
  /** Drops what it recorded; its behaviour stays. */
  forget(): void;
  stop(): Promise<void>;
}

/** Listens on a Unix socket, the shipped configuration's form. */
export async function startRecordingAuthz(): Promise<RecordingAuthz> {
  const folder = await mkdtemp(join(tmpdir(), 'pg-authz-'));
  const path = join(folder, 'a.sock');
  const checks: CheckMessage[] = [];
  let behaviour: AuthzBehaviour = allow;
  const server = new Server({ 'grpc.max_receive_message_length': 16 * 1024 * 1024 });
  server.addService(authorizationService(), {
    Check: (
      call: { request: CheckMessage },
      respond: (error: Partial<ServiceError> | null, answer?: unknown) => void,
    ) => {
      checks.push(call.request);
      if (behaviour === 'fault') respond({ code: status.INTERNAL, details: 'fault requested' });
      else if (behaviour !== 'silence') respond(null, withDecisionId(behaviour));
    },
  });
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | null) => (error === null ? resolve() : reject(error));
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), done);
  });
  return {
    address: { kind: 'unix', path },
    checks,
    behave: (next) => {
      behaviour = next;
    },
    forget: () => void checks.splice(0),
    stop: async () => {
      server.forceShutdown();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const DECISION_ID: HeaderOption = {
  header: { key: 'x-proofgate-decision-id', value: '00000000-0000-4000-8000-000000000000' },
  append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
};

function withDecisionId(answer: CheckAnswer): CheckAnswer {
  const { ok_response: ok } = answer;
  if (ok === undefined) return answer;
  return { ...answer, ok_response: { ...ok, headers: [...(ok.headers ?? []), DECISION_ID] } };
}

function authorizationService(): ServiceDefinition {
  const file = 'envoy/service/auth/v3/authorization.proto';
  const definition = loadSync(file, {
    keepCase: true,
    defaults: true,
    longs: Number,
    enums: String,
    includeDirs: [checkoutPath('proto')],
  });
  const service = definition['envoy.service.auth.v3.Authorization'];
  if (service === undefined || !isService(service)) throw new Error(`${file} describes no service`);
  return service;
}

function isService(definition: AnyDefinition): definition is ServiceDefinition {
  return !('format' in definition);
}

/** The header lines of a check, values as text, whichever form Envoy sent them in. */
export function checkedHeaders(http: CheckedHttp): readonly (readonly [string, string])[] {
  const raw = http.header_map?.headers ?? [];
  return [
    ...raw.map(({ key, raw_value }) => [key, raw_value.toString('latin1')] as const),
    ...Object.entries(http.headers),
  ];
}
