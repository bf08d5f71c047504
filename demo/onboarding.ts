/**
 * Onboarding, from a site file to keys in the verifier: the commands of the operator and of the workloads, step by step, with
 * their output.
 */
import { isRecord, stringMember } from './answer.ts';
import { type EnrollmentPlane, projectToken } from './enrollment-plane.ts';
import type { DemoFiles } from './files.ts';
import { messageOf, SetupError } from './parts.ts';
import type { ProofgateCli } from './proofgate-cli.ts';
import { type Caller, callers, siteId, tokenLifeSeconds, workloadOf } from './site.ts';

/** Takes one step for the report: what was run, what came back. */
export type Tell = (what: string, cameBack: string) => void;

/** What `proofgate enroll` printed about a key. */
export interface EnrolledKey {
  readonly status: string;
  readonly keyId: string;
  readonly expiresAtMs: number;
  /** How long the command took. */
  readonly tookMs: number;
}

/** Lines of a log that are shown when a step fails. */
const shownLogLines = 8;

/** The operator who holds Control's bootstrap token. */
export class Operator {
  readonly #cli: ProofgateCli;
  readonly #connection: readonly string[];
  readonly #plane: EnrollmentPlane;

  constructor(cli: ProofgateCli, files: DemoFiles, plane: EnrollmentPlane) {
    this.#cli = cli;
    this.#plane = plane;
    this.#connection = ['--control-url', plane.controlUrl, '--token-file', files.operatorToken];
  }

  /** The words of `proofgate ctl …`. */
  words(...args: readonly string[]): readonly string[] {
    return ['ctl', ...args, ...this.#connection];
  }

  /** @throws SetupError */
  ctl(...args: readonly string[]): Promise<unknown> {
    return step(`ctl ${args.join(' ')}`, this.#plane, () => this.#cli.runForJson(this.words(...args)));
  }

  /** @throws SetupError */
  async list(kind: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const answer = await this.ctl('get', kind, '--site', siteId);
    return isRecord(answer) && Array.isArray(answer.items) ? answer.items.filter(isRecord) : [];
  }
}

/**
 * Makes Control hold the site, and puts what the verifier needs into files: its token, and the public keys to pin.
 * @throws SetupError
 */
export async function declareSite(operator: Operator, files: DemoFiles, tell: Tell): Promise<Policies> {
  const applied = await operator.ctl('apply', '-f', files.siteYaml, '--token-dir', files.targetTokens);
  const steps = isRecord(applied) && Array.isArray(applied.steps) ? applied.steps.filter(isRecord) : [];
  const sources = steps.filter(({ verb, kind }) => verb === 'activate' && kind === 'source');
  const active = sources.map(({ name }) => `source "${String(name)}" is active`).join(', ');
  tell('ctl apply -f site.yaml', `${steps.length} steps done; ${active}`);
  const [policies, pinned] = await Promise.all([
    operator.list('policies'),
    operator.ctl('signing-keys', '--site', siteId, '--out-dir', files.pins),
  ]);
  const keys = isRecord(pinned) && Array.isArray(pinned.keys) ? pinned.keys.filter(isRecord) : [];
  const purposes = keys.map(({ purpose }) => String(purpose)).sort();
  tell('ctl signing-keys', `public keys for the sidecar to pin: ${purposes.join(', ')}`);
  return new Map(
    policies.map(({ display_name: name, policy_id: id, reference }) => [
      String(name),
      { id: String(id), reference: String(reference) },
    ]),
  );
}

/** By their names. */
export type Policies = ReadonlyMap<string, Policy>;

interface Policy {
  readonly id: string;
  /** Opaque: what workloads are given. */
  readonly reference: string;
}

export interface Enrolling {
  readonly cli: ProofgateCli;
  readonly files: DemoFiles;
  readonly plane: EnrollmentPlane;
  readonly policies: Policies;
  readonly tell: Tell;
}

/**
 * Two pods with tokens of the issuer's first key; then it signs with another, as clusters do now and then, and Control,
 * which has not seen that key yet, fetches it when the third pod's token comes.
 * @throws SetupError
 */
export async function enrollLastingCallers(enrolling: Enrolling): Promise<LastingKeys> {
  const { billing, reporting, spare } = callers;
  const [billingKey, reportingKey] = await Promise.all([
    enroll(enrolling, billing, tokenLifeSeconds),
    enroll(enrolling, reporting, tokenLifeSeconds),
  ]);
  const { kid } = enrolling.plane.issuer.rotate();
  enrolling.tell('(the issuer rotates)', `signs tokens with a new key from now on, ${kid}`);
  const spareKey = await enroll(enrolling, spare, tokenLifeSeconds);
  return {
    keys: new Map<Caller, EnrolledKey>([
      [billing, billingKey],
      [reporting, reportingKey],
      [spare, spareKey],
    ]),
    spare: spareKey,
  };
}

export interface LastingKeys {
  readonly keys: ReadonlyMap<Caller, EnrolledKey>;
  /** The last. */
  readonly spare: EnrolledKey;
}

/** @throws SetupError */
export async function enroll(
  { cli, files, plane, policies, tell }: Enrolling,
  caller: Caller,
  tokenSeconds: number,
): Promise<EnrolledKey> {
  const { name, serviceAccount } = caller;
  const { reference = '' } = policies.get(serviceAccount) ?? {};
  const { subject } = workloadOf(caller);
  await projectToken(plane.issuer, files, { caller, pod: name, expiresInSeconds: tokenSeconds });
  const startedAtMs = performance.now();
  const enrolled = await step(`enroll (${name})`, plane, async () =>
    enrolledKey(
      await cli.runForJson([
        ...['enroll', '--control-url', plane.controlUrl, '--policy', reference],
        ...['--proof-file', files.token(name), '--private-key-out', files.key(name)],
      ]),
    ),
  );
  const key = { ...enrolled, tookMs: performance.now() - startedAtMs };
  const life = tokenSeconds === tokenLifeSeconds ? '' : ` with its token of ${tokenSeconds} s`;
  tell(
    `enroll (pod ${name})`,
    `${subject} -> ${key.status}, ${key.keyId}, ends ${timeOf(key.expiresAtMs)}${life}`,
  );
  return key;
}

/** The time of day, UTC. */
export function timeOf(momentMs: number): string {
  return `${new Date(momentMs).toISOString().slice(11, 19)}Z`;
}

function enrolledKey(answer: unknown): Omit<EnrolledKey, 'tookMs'> {
  const keyId = stringMember(answer, 'key_id');
  const status = stringMember(answer, 'status');
  const expiresAtMs = Date.parse(stringMember(answer, 'expires_at') ?? '');
  if (keyId === undefined || status === undefined || Number.isNaN(expiresAtMs)) {
    throw new Error('enroll printed no key ID, status or expiry');
  }
  return { keyId, status, expiresAtMs };
}

/** Waits until Control reports that the sidecar has everything for a request of this caller. @throws SetupError */
export async function awaitReadiness({ cli, files, plane, tell }: Enrolling, caller: Caller): Promise<void> {
  const conditions = await step(`status (${caller.name})`, plane, async () => {
    const deadlineMs = performance.now() + readinessTimeoutMs;
    for (;;) {
      const status = await cli.runForJson(['status', '--key', files.key(caller.name)]);
      const readiness = isRecord(status) && isRecord(status.readiness) ? status.readiness : undefined;
      const all = Array.isArray(readiness?.conditions) ? readiness.conditions.filter(isRecord) : [];
      if (readiness?.ready === true) return all;
      const open = all.filter(({ satisfied }) => satisfied !== true);
      if (performance.now() > deadlineMs) throw new Error(`not ready: ${JSON.stringify(open)}`);
    }
  });
  const names = conditions.map(({ condition }) => String(condition).replaceAll('_', ' '));
  tell(`status (pod ${caller.name})`, `ready: ${names.join(', ')}`);
}

const readinessTimeoutMs = 15_000;

async function step<T>(name: string, { control }: EnrollmentPlane, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const log = control.stderrLines.slice(-shownLogLines);
    throw new SetupError(name, messageOf(error), '', ["Control's log:", ...log.map((line) => `  ${line}`)]);
  }
}
