/**
 * Patches of Envoy Gateway's clusters that change how the verifier is reached. A cluster's name says whose it is: `securitypolicy/…` the
 * verifier's, `httproute/…` an API's. Source: Envoy Gateway 1.9, EnvoyPatchPolicy.
 */
import type { Gateway } from './gateway.ts';
import { isSelector, type PatchTarget, targetOf } from './json-patch.ts';
import { ofKind } from './settings.ts';
import { tlsContextsIn } from './upstream-tls.ts';
import { snakeCase, type View } from './view.ts';

/** They take TLS away, or put something else in its place. */
export function plainPatches(gateway: Gateway): readonly View[] {
  return operationsOf(gateway).flatMap(({ op, operation, value }) => {
    const pointers = op.text === 'move' ? POINTERS : POINTERS.slice(0, 1);
    const isWhole = pointers.some((pointer) => isSocket(targetOf(operation, pointer)));
    return isWhole && (value === undefined || tlsContextsIn(value).length === 0) ? [op] : [];
  });
}

/** They take away what a certificate is held against. */
export function unverifiedPatches(gateway: Gateway): readonly View[] {
  return operationsOf(gateway).flatMap(({ op, operation }) =>
    op.text === 'remove' && isValidation(targetOf(operation, 'path')) ? [op] : [],
  );
}

/** Contexts of TLS that they put in. */
export function patchedContexts(gateway: Gateway): readonly View[] {
  return operationsOf(gateway).flatMap(({ value }) => (value === undefined ? [] : tlsContextsIn(value)));
}

const POINTERS = ['path', 'from'] as const;

interface Operation {
  readonly op: View;
  readonly operation: View;
  readonly value: View | undefined;
}

function operationsOf(gateway: Gateway): readonly Operation[] {
  return ofKind(gateway, 'EnvoyPatchPolicy')
    .flatMap(({ spec }) => spec.list('json_patches'))
    .filter((entry) => /\.Cluster$/.test(entry.get('type')?.text ?? ''))
    .filter((entry) => !/^(?:http|grpc|tls|tcp|udp)route\//.test(entry.get('name')?.text ?? ''))
    .flatMap((entry) => {
      const operation = entry.get('operation');
      const op = operation?.get('op');
      if (operation === undefined || op === undefined || op.text === 'test') return [];
      return [{ op, operation, value: operation.get('value') }];
    });
}

const SOCKETS = ['transport_socket', 'transport_socket_matches'];

/** Names below the socket; undefined for what is not in one. */
function namesInSocket({ members }: PatchTarget): readonly string[] | undefined {
  const names = members.map(snakeCase).filter((member) => !isSelector(member));
  const at = names.findLastIndex((name) => SOCKETS.includes(name));
  return at === -1 ? undefined : names.slice(at + 1);
}

function isSocket(target: PatchTarget): boolean {
  return namesInSocket(target)?.every((name) => name === 'typed_config') ?? false;
}

function isValidation(target: PatchTarget): boolean {
  const names = namesInSocket(target) ?? [];
  return names.at(-1) === 'common_tls_context' || names.some((name) => name.includes('validation_context'));
}
