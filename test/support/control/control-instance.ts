/** One `proofgate control` as a process, with the settings of the end-to-end tests. */
import { isJsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import { type Service, startProofgate } from '../harness/sidecar.ts';

export interface InstanceSettings {
  readonly port: number;
  readonly dataDirectory: string;
  readonly publicUrl: string;
  /** CA file of the issuer. */
  readonly caFile: string;
  readonly flags: readonly string[];
  /** Undefined: the embedded database. */
  readonly databaseUrl: string | undefined;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** File of a released program. Undefined: the one under test. */
  readonly release?: string | undefined;
}

/** Ready when it resolves. */
export function startInstance(settings: InstanceSettings): Promise<Service> {
  const service = {
    env: instanceEnvironment(settings),
    readyUrl: (lines: readonly string[]) => adminUrl(lines, '/readyz'),
  };
  return startProofgate(instanceArguments(settings), service, settings.release);
}

export function instanceArguments(settings: InstanceSettings): readonly string[] {
  const { port, dataDirectory, publicUrl, caFile, flags } = settings;
  return [
    ...['control', '--data-dir', dataDirectory, '--listen', `127.0.0.1:${port}`],
    ...['--admin-listen', '127.0.0.1:0', '--public-url', publicUrl, '--log-level', 'trace'],
    ...['--allow-issuer-network', '127.0.0.0/8', '--issuer-ca-file', caFile],
    ...['--address-rate', '10000', '--policy-rate', '10000', '--operator-rate', '10000'],
    ...flags,
  ];
}

/** An environment variable instead of an argument, because it contains a password. */
export function instanceEnvironment({ databaseUrl, env }: InstanceSettings) {
  return { PROOFGATE_DATABASE_URL: databaseUrl, ...env };
}

/** Undefined until the log says where it listens. */
export function adminUrl(lines: readonly string[], path: string): string | undefined {
  const line = lines.find((each) => each.includes('"msg":"listening"'));
  const parsed = line === undefined ? undefined : parseStrictJson(line);
  return isJsonObject(parsed) ? `http://${String(parsed.admin_listen)}${path}` : undefined;
}
