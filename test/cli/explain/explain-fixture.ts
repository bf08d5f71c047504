/** Fixture with a signed bundle on disk, captured requests, and their secrets, which must not appear in any output. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CheckRequest } from '../../../src/process/ext-authz/request-messages.ts';
import { freshnessDocument, putBundle } from '../../support/bundle/bundle-directory.ts';
import { runInProcess } from '../../support/cli/in-process.ts';
import type { CliRun } from '../../support/cli/run-cli.ts';
import { AUTH_SITE, NOW_SECONDS, newSigningKey } from '../../support/fixtures/bundle-content.ts';
import {
  type RequestEdits,
  type RequestPlan,
  type SignedRequest,
  signRequest,
  type WireRequest,
} from '../../support/fixtures/signed-request.ts';
import { compileSite, newSiteKeys, siteContent } from '../../support/fixtures/snapshot.ts';
import { createTestVerifier } from '../../support/fixtures/test-verifier.ts';

export const keys = newSiteKeys();
export const bundleKey = newSigningKey();
const site = await compileSite(siteContent(keys));
/** Seconds between the issue of the bundle and its freshness statement. */
const STATED_AFTER_SECONDS = 2;

export class ExplainStage {
  readonly folder: string;
  readonly bundle: string;
  /** Output of all runs. */
  readonly #said: string[] = [];
  readonly #secrets = new Set<string>();
  #captures = 0;

  private constructor(folder: string) {
    this.folder = folder;
    this.bundle = folder;
  }

  static async open(): Promise<ExplainStage> {
    const stage = new ExplainStage(await mkdtemp(join(tmpdir(), 'proofgate-explain-test-')));
    const position = await putBundle(stage.bundle, siteContent(keys), bundleKey);
    const asOfSeconds = NOW_SECONDS - STATED_AFTER_SECONDS;
    const statement = freshnessDocument({ authSite: AUTH_SITE, ...position, asOfSeconds }, bundleKey);
    await writeFile(stage.path('freshness.jws'), statement);
    await writeFile(stage.path('key.jwk.json'), JSON.stringify(bundleKey.publicKey.jwk));
    return stage;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  close(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }

  get said(): string {
    return this.#said.join('\n');
  }

  /** Secrets in the captured requests: credentials that can be used again, and private values of the caller. */
  get secrets(): readonly string[] {
    return [...this.#secrets];
  }

  keepSecret(...secrets: readonly string[]): void {
    for (const secret of secrets) this.#secrets.add(secret);
  }

  sign(plan: RequestPlan, edits: RequestEdits = {}): SignedRequest {
    const signed = signRequest(keys, plan, edits);
    const { jti, jws, signature, transcriptText } = signed;
    const transcript = Buffer.from(transcriptText, 'latin1');
    this.keepSecret(jws, jws.split('.').at(-1) ?? '', jti, transcriptText);
    this.keepSecret(transcript.toString('base64url'), transcript.toString('base64'));
    for (const encoding of ['base64url', 'base64', 'hex'] as const) {
      this.keepSecret(signature.toString(encoding));
    }
    return signed;
  }

  /** Writes the capture and explains it with the bundle of this fixture, unless arguments say otherwise. */
  async explain(capture: unknown, ...args: readonly string[]): Promise<CliRun> {
    this.#captures += 1;
    const file = this.path(`capture-${this.#captures}.json`);
    await writeFile(file, typeof capture === 'string' ? capture : JSON.stringify(capture));
    const source = args.some((arg) => arg === '--bundle' || arg === '--state-dir')
      ? []
      : ['--bundle', this.bundle, '--bundle-key', this.path('key.jwk.json')];
    return this.run('--request', file, ...source, ...args);
  }

  async run(...args: readonly string[]): Promise<CliRun> {
    const run = await runInProcess(['explain', ...args]);
    this.#said.push(run.stdout, run.stderr);
    return run;
  }

  /** Returns the parsed output of `--output json`. */
  async report(capture: unknown, ...args: readonly string[]): Promise<{ run: CliRun; report: Report }> {
    const run = await this.explain(capture, '--output', 'json', ...args);
    return { run, report: JSON.parse(run.stdout || '{}') };
  }
}

/** Members of the JSON output that the tests read. */
export interface Report {
  readonly decision: {
    readonly outcome: string;
    readonly reason: string | null;
    readonly detail: string | null;
    readonly status: number | null;
  };
  readonly hint: string | null;
  readonly needs: readonly string[];
  readonly at: string;
  readonly at_source: string;
  readonly bundle: {
    readonly signatures: string;
    readonly revision: number;
    readonly warnings: readonly string[];
  };
  readonly recorded: { readonly comparison: string | null; readonly same_transcript: boolean | null } | null;
  readonly request: {
    readonly authority: string;
    readonly target: string;
    readonly as_signed: boolean;
  };
  readonly steps: readonly {
    readonly step: number;
    readonly name: string;
    readonly verdict: string;
    readonly reason?: string;
  }[];
  readonly rules: readonly { readonly fault: string | null; readonly canonical: boolean }[];
  readonly freshness: { readonly age_seconds: number; readonly limit_seconds: number } | null;
  readonly clock: {
    readonly proof: { readonly ahead_seconds: number; readonly late_seconds: number };
  } | null;
  readonly transcript: readonly {
    readonly line: string;
    readonly equal: boolean;
    readonly signed: string | null;
    readonly rebuilt: string | null;
    readonly why: string | null;
    readonly difference: object | null;
  }[];
  readonly caller: { readonly key: string | null } | null;
  readonly when_made: { readonly decision: { readonly outcome: string } } | null;
}

/** The audit event that a verifier with the same bundle writes for the request. */
export function eventOf(signed: SignedRequest, times = 1): object {
  const { events, verifier } = createTestVerifier({ snapshot: site });
  for (let i = 0; i < times; i++) verifier.check(signed.facts);
  return JSON.parse(JSON.stringify(events.at(-1)));
}

/** A capture with the request and its event, as an operator assembles it. */
export function captureOf(signed: SignedRequest, event: object = eventOf(signed)): object {
  const { authority, body, headers, method, scheme, target } = signed.wire;
  const bytes = body.kind === 'exact' ? { body_base64: Buffer.from(body.bytes).toString('base64') } : {};
  const lines = headers.map(({ name, value }) => `${name}: ${value}`);
  return { event, method, scheme, authority, path: target, headers: lines, ...bytes };
}

/** A CheckRequest in protobuf's JSON form. */
export function protobufJson(check: CheckRequest, spelling: 'camel' | 'snake', time?: string): object {
  const spelled = JSON.parse(JSON.stringify(check), (_, value: unknown) => {
    if (isBufferJson(value)) return Buffer.from(value.data).toString('base64');
    if (spelling === 'snake' || typeof value !== 'object' || value === null || Array.isArray(value))
      return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [camelOf(name), member]));
  });
  if (time !== undefined) spelled.attributes.request.time = time;
  return spelled;
}

function isBufferJson(value: unknown): value is { readonly data: readonly number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer';
}

/** Converts a field name to camel case. Header names contain dashes, so they stay as they are. */
function camelOf(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function withLines(
  request: WireRequest,
  ...lines: readonly [name: string, value: string][]
): WireRequest {
  return { ...request, headers: [...request.headers, ...lines.map(([name, value]) => ({ name, value }))] };
}
