/**
 * Authenticates operators and loads their roles.
 *
 * Nothing is cached between requests. Each request reads its token, session and role grants, so that a revocation takes
 * effect on every instance from the next request on. Tokens are 256 random bits, looked up by their hash, so that the
 * timing of the index lookup reveals nothing about them.
 * Source: docs/operate/control.md "Operators".
 */

import { parseStrictJson } from '../../protocol/strict-json.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { BOOTSTRAP_ACTOR, type HeldRole, INSTALLATION } from '../domain/roles.ts';
import { type TokenKind, tokenHash, tokenKind } from '../secrets/bearer-token.ts';
import { leadRounds } from '../store/leader-jobs.ts';
import type { ControlStore, Transaction } from '../store/port.ts';
import { isBootstrapToken } from './bootstrap-token.ts';
import { groupPrincipal, sessionIdOf } from './operator-identity.ts';

/** An authenticated operator or automation. */
export interface Principal {
  /** The name in audit rows: `oidc:<issuer>|<subject>`, `token:<id>`, `bootstrap`. */
  readonly actor: string;
  readonly displayName: string;
  readonly via: 'bootstrap' | 'access_token' | 'session';
  readonly roles: readonly HeldRole[];
  /** When these credentials expire; undefined when they do not. */
  readonly expiresAtMs?: number | undefined;
  /** The public name of the session; undefined for other credentials. */
  readonly sessionId?: string;
}

/** A request's credentials, not verified yet. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly sessionCookie: string | undefined;
}

export interface Operators {
  /** @throws ApiProblem `authentication_required` */
  authenticate(credentials: Credentials): Promise<Principal>;
}

interface OperatorsOptions {
  readonly store: ControlStore;
  readonly tokenUsage: Pick<TokenUsage, 'note'>;
  readonly nowMs: () => number;
}

/** Looks up one kind of token; undefined for an unknown or expired one, or one of another kind. */
type Lookup = (tx: Transaction, hash: string, nowMs: number) => Promise<Found | undefined>;

interface Found {
  readonly principal: Principal;
  readonly accessTokenId?: string;
}

const LOOKUPS: { readonly [K in TokenKind]: Lookup | undefined } = {
  bootstrap: findBootstrap,
  access: findAccessToken,
  session: findSession,
  target: undefined,
};

export function createOperators({ store, tokenUsage, nowMs }: OperatorsOptions): Operators {
  return {
    async authenticate(credentials) {
      const token = tokenOf(credentials);
      const kind = token === undefined ? undefined : tokenKind(token);
      const find = kind === undefined ? undefined : LOOKUPS[kind];
      if (token === undefined || find === undefined) throw new ApiProblem('authentication_required');
      const found = await store.read((tx) => find(tx, tokenHash(token), nowMs()));
      if (found === undefined) throw new ApiProblem('authentication_required');
      if (found.accessTokenId !== undefined) tokenUsage.note(found.accessTokenId);
      return found.principal;
    },
  };
}

/** The Authorization header takes precedence; an invalid header does not fall back to the cookie. */
function tokenOf({ authorization, sessionCookie }: Credentials): string | undefined {
  if (authorization !== undefined) return bearerToken(authorization);
  // A cookie may hold only a session, so that a cross-site request cannot use any other kind of token.
  return sessionCookie !== undefined && tokenKind(sessionCookie) === 'session' ? sessionCookie : undefined;
}

/** RFC 6750 section 2.1; the scheme is case-insensitive (RFC 9110 section 11.1). */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer +([!-~]{1,256})$/i.exec(authorization ?? '')?.[1];
}

const BOOTSTRAP_ROLES: readonly HeldRole[] = [{ role: 'admin', scope: INSTALLATION }];

async function findBootstrap(tx: Transaction, hash: string): Promise<Found | undefined> {
  if (!(await isBootstrapToken(tx, hash))) return undefined;
  const roles = BOOTSTRAP_ROLES;
  return { principal: { actor: BOOTSTRAP_ACTOR, displayName: 'bootstrap token', via: 'bootstrap', roles } };
}

async function findAccessToken(tx: Transaction, hash: string, nowMs: number): Promise<Found | undefined> {
  const row = await tx.operators.tokenByHash(hash);
  if (row === undefined || (row.expiresAtMs !== null && row.expiresAtMs <= nowMs)) return undefined;
  const scope = { kind: row.scopeKind, id: row.scopeId };
  return {
    principal: {
      actor: `token:${row.id}`,
      displayName: row.name,
      via: 'access_token',
      roles: [{ role: row.role, scope }],
      expiresAtMs: row.expiresAtMs ?? undefined,
    },
    accessTokenId: row.id,
  };
}

async function findSession(tx: Transaction, hash: string, nowMs: number): Promise<Found | undefined> {
  const session = await tx.operators.session(hash);
  if (session === undefined || session.expiresAtMs <= nowMs) return undefined;
  const { principal: actor, displayName, groups, expiresAtMs } = session;
  const roles =
    actor === BOOTSTRAP_ACTOR
      ? BOOTSTRAP_ROLES
      : await grantedRoles(tx, [actor, ...groupNames(groups).map(groupPrincipal)]);
  const sessionId = sessionIdOf(hash);
  return { principal: { actor, displayName, via: 'session', roles, expiresAtMs, sessionId } };
}

async function grantedRoles(tx: Transaction, principals: readonly string[]): Promise<readonly HeldRole[]> {
  const grants = await tx.operators.grantsOf(principals);
  return grants.map(({ role, scopeKind, scopeId }) => ({ role, scope: { kind: scopeKind, id: scopeId } }));
}

function groupNames(json: string): readonly string[] {
  const groups = parseStrictJson(json);
  return Array.isArray(groups) ? groups.filter((name): name is string => typeof name === 'string') : [];
}

/**
 * Records the last use of access tokens in memory and writes it in batches, so that a request costs no write. A crash
 * loses at most one interval.
 */

export interface TokenUsage {
  note(tokenId: string): void;
  flush(): Promise<void>;
}

export function createTokenUsage(store: ControlStore, nowMs: () => number): TokenUsage {
  let used = new Map<string, number>();
  return {
    note(tokenId) {
      used.set(tokenId, nowMs());
    },
    async flush() {
      if (used.size === 0) return;
      const noted = used;
      used = new Map();
      await store.writeUnaudited(undefined, (tx) => tx.operators.noteTokensUsed(noted));
    },
  };
}

/**
 * Background jobs of the operators' part. The leading instance prunes ended sessions and sign-ins and old idempotent
 * responses. Each instance writes the last use of access tokens.
 */
interface OperatorJobs {
  readonly store: ControlStore;
  readonly nowMs: () => number;
  readonly tokenUsage: TokenUsage;
  /** Reports a failed round; the next one tries again. */
  readonly report: (error: unknown) => void;
  readonly pruneRoundMs?: number;
  readonly usageRoundMs?: number;
}

const PRUNE_ROUND_MS = 60_000;
const USAGE_ROUND_MS = 15_000;
/** How long an idempotent response is kept. */
const ANSWER_RETENTION_MS = 24 * 3_600_000;

/** @returns a function that stops the jobs; it resolves when recorded uses are written */
export function startOperatorJobs(jobs: OperatorJobs): () => Promise<void> {
  const { store, nowMs, tokenUsage, report, pruneRoundMs = PRUNE_ROUND_MS } = jobs;
  const stopPruning = leadRounds(store, 'operator-housekeeping', {
    pauseMs: pruneRoundMs,
    report,
    run: () => pruneOperatorRecords(store, nowMs()),
  });
  const flush = () => tokenUsage.flush().catch(report);
  const timer = setInterval(() => void flush(), jobs.usageRoundMs ?? USAGE_ROUND_MS).unref();
  return async () => {
    clearInterval(timer);
    await stopPruning();
    await flush();
  };
}

export async function pruneOperatorRecords(store: ControlStore, nowMs: number): Promise<void> {
  await store.writeUnaudited(undefined, (tx) => tx.operators.pruneSessions(nowMs));
  await store.writeUnaudited(undefined, (tx) => tx.operators.pruneAnswers(nowMs - ANSWER_RETENTION_MS));
}
