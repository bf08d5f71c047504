/** A site of Control with verifiers of any version, and workloads that enroll and sign with the command line of any version. */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { CheckResponse } from '../../../src/process/ext-authz/response-messages.ts';
import { isJsonObject, parseStrictJson } from '../../../src/protocol/strict-json.ts';
import type { WireRequest } from '../../../src/tools/conformance/wire/exchange.ts';
import { runInProcess } from '../cli/in-process.ts';
import { rawCheckRequest } from '../fixtures/check-request.ts';
import type { HeaderLine } from '../fixtures/signed-request.ts';
import {
  type CheckClient,
  encodeCheckRequest,
  openCheckClient,
  outcomeOfResponse,
} from '../harness/check-client.ts';
import { startProofgate } from '../harness/sidecar.ts';
import { waitFor } from '../wait.ts';
import { ControlStage, type ControlStageOptions } from './control-fixture.ts';
import { SITE_ID } from './site-declaration.ts';

export const ALLOWED = 'allowed';
export const REPLAYED = 'jti_replay 403';
export const REVOKED = 'invalid_request_proof/key_revoked 401';

/** File of a released program; when undefined, the program under test. */
export type Program = string | undefined;

const ORIGIN = { scheme: 'http', authority: 'api.shop.example' };
const TARGET = '/v1/orders/7';
/** Long, because verifiers start while Control is down, on busy test machines. */
const MAX_STALENESS_SECONDS = 600;

export interface FollowingVerifier {
  check(checkRequest: Buffer): Promise<CheckResponse>;
  /** `allowed`, or `reason/detail status`. */
  present(checkRequest: Buffer): Promise<string>;
  /** What it wrote to standard output: its audit events. */
  readonly auditLines: readonly string[];
  readonly readyUrl: string;
  stop(): Promise<void>;
}

export interface FollowingOptions {
  readonly program: Program;
  /** Target name at Control, and name of the state directory. */
  readonly target: string;
  /** `memory` or a Redis URL. */
  readonly replay: string;
  readonly flags?: readonly string[];
  /** Of the ext_authz server; default: any that is free. */
  readonly port?: number;
  /** Default 400ms. */
  readonly redisTimeout?: string;
}

export class FollowedSite {
  readonly stage: ControlStage;
  readonly #verifiers = new Set<FollowingVerifier>();

  private constructor(stage: ControlStage) {
    this.stage = stage;
  }

  /** Starts Control, declares the site and pins its keys. */
  static async start(
    options: ControlStageOptions & { readonly targets: readonly string[] },
  ): Promise<FollowedSite> {
    const stage = await ControlStage.start({ maxStalenessSeconds: MAX_STALENESS_SECONDS, ...options });
    const site = new FollowedSite(stage);
    const pins = join(stage.directory, 'pins');
    await mkdir(pins);
    await stage.ctl('signing-keys', '--site', SITE_ID, '--out-dir', pins);
    return site;
  }

  /** Resolves when the verifier is ready. A restarted verifier finds its previous state directory. */
  async startVerifier({
    flags = [],
    port = 0,
    program,
    redisTimeout = '400ms',
    replay,
    target,
  }: FollowingOptions): Promise<FollowingVerifier> {
    const { directory, controlUrl } = this.stage;
    const pins = join(directory, 'pins');
    const keys = (await readdir(pins)).flatMap((file) => [
      file.startsWith('bundle') ? '--bundle-key' : '--freshness-key',
      join(pins, file),
    ]);
    const state = join(directory, `state-${target}`);
    await mkdir(state, { recursive: true });
    const service = await startProofgate(
      [
        ...['verifier', '--auth-site', SITE_ID, '--state-dir', state, ...keys],
        ...['--listen', `127.0.0.1:${port}`, '--admin-listen', '127.0.0.1:0'],
        ...['--control-url', controlUrl, '--control-token-file', join(directory, `${target}.token`)],
        ...(replay === 'memory' ? [] : ['--redis-timeout', redisTimeout]),
        ...flags,
      ],
      {
        env: { PROOFGATE_REPLAY: replay },
        readyUrl: (lines) => readyUrl(listening(lines)?.admin_listen),
      },
      program,
    );
    const client: CheckClient = openCheckClient(String(listening(service.stderrLines)?.listen));
    const verifier: FollowingVerifier = {
      auditLines: service.stdoutLines,
      readyUrl: String(readyUrl(listening(service.stderrLines)?.admin_listen)),
      check: (request) => client.checkBytes(request),
      present: async (request) => outcomeOfResponse(await client.checkBytes(request)),
      stop: async () => {
        this.#verifiers.delete(verifier);
        client.close();
        await service.stop();
      },
    };
    this.#verifiers.add(verifier);
    return verifier;
  }

  /** A request that `proofgate sign` signed, as a CheckRequest from Envoy. @param flags further flags of `sign` */
  async sign(keyFile: string, flags?: readonly string[]): Promise<Buffer> {
    return this.request(await this.#signedHeaders(keyFile, flags));
  }

  /** The same, as a request to a gateway. */
  async signedRequest(keyFile: string): Promise<WireRequest> {
    const lines = await this.#signedHeaders(keyFile);
    const headers = lines.map(({ name, value }) => [name, value] as const);
    return { method: 'GET', target: TARGET, authority: ORIGIN.authority, headers };
  }

  async #signedHeaders(
    keyFile: string,
    flags: readonly string[] = ['--ttl', '5m'],
  ): Promise<readonly HeaderLine[]> {
    const url = `${ORIGIN.scheme}://${ORIGIN.authority}${TARGET}`;
    const command = ['sign', 'GET', url, '--key', keyFile, '--out', '-', '--format', 'json', ...flags];
    // A wait signs many times: only a released program needs a process for it.
    const isReleased = this.stage.commandRelease !== undefined;
    const result = await (isReleased ? this.stage.run(command) : runInProcess(command));
    if (result.exitCode !== 0) throw new Error(`sign: ${result.stderr}`);
    const lines = parseStrictJson(result.stdout);
    if (!isJsonObject(lines)) throw new Error('sign did not answer an object');
    return Object.entries(lines).map(([name, value]) => ({ name, value: String(value) }));
  }

  /** The same without a proof. */
  request(headers: readonly HeaderLine[] = []): Buffer {
    const request = { ...ORIGIN, method: 'GET', target: TARGET, headers, body: { kind: 'none' } } as const;
    return encodeCheckRequest(rawCheckRequest(request));
  }

  /** Presents new proofs until the outcome is as expected, since propagation and fences take time. @returns the last proof */
  async awaitOutcome(verifier: FollowingVerifier, keyFile: string, expected: string): Promise<Buffer> {
    let last = '';
    try {
      return await waitFor(expected, async () => {
        const proof = await this.sign(keyFile);
        last = await verifier.present(proof);
        return last === expected ? proof : undefined;
      });
    } catch (error) {
      throw new Error(`${String(error)}; the last was ${last}`);
    }
  }

  async stop(): Promise<void> {
    for (const verifier of this.#verifiers) await verifier.stop();
    await this.stage.stop();
  }
}

interface ListeningLine {
  readonly listen: string;
  readonly admin_listen: string;
}

function listening(lines: readonly string[]): ListeningLine | undefined {
  const line = lines.find((each) => each.includes('"msg":"listening"'));
  return line === undefined ? undefined : JSON.parse(line);
}

function readyUrl(address: string | undefined): string | undefined {
  return address === undefined ? undefined : `http://${address}/readyz`;
}
