/**
 * Sessions of signed-in operators. A session has a fixed lifetime, whatever its use. Control stores only the token's hash.
 * Source: docs/operate/control.md "Operators".
 */
import { ApiProblem } from '../domain/api-problem.ts';
import { BOOTSTRAP_ACTOR } from '../domain/roles.ts';
import { newToken, tokenHash } from '../secrets/bearer-token.ts';
import type { ControlStore, Transaction } from '../store/port.ts';
import { isBootstrapToken } from './bootstrap-token.ts';
import { type OperatorIdentity, operatorPrincipal, sessionIdOf } from './operator-identity.ts';

export interface StartedSession {
  /** A secret: `pgs_…`. */
  readonly token: string;
  readonly expiresAtMs: number;
}

export interface Sessions {
  /** @param via how the operator signed in, for the audit trail */
  start(
    identity: OperatorIdentity,
    via: 'browser' | 'command_line',
    requestId: string,
  ): Promise<StartedSession>;
  /**
   * Starts a session of the bootstrap token. It ends at the latest when the token is disabled or replaced.
   * @throws ApiProblem `authentication_required` when the token is not the current one
   */
  startBootstrap(bootstrapToken: string, requestId: string): Promise<StartedSession>;
  /** Ends the session if it exists. */
  end(token: string, requestId: string): Promise<void>;
}

interface SessionOptions {
  readonly store: ControlStore;
  readonly lifetimeMs: number;
  readonly nowMs: () => number;
}

/** The bootstrap token is for setting up: its sessions are short, whatever the lifetime of others. */
const MAX_BOOTSTRAP_SESSION_MS = 3_600_000;

interface NewSession {
  readonly principal: string;
  readonly displayName: string;
  readonly groups: readonly string[];
  readonly via: 'browser' | 'command_line' | 'bootstrap_token';
  readonly lifetimeMs: number;
  readonly requestId: string;
}

export function createSessions({ store, lifetimeMs, nowMs }: SessionOptions): Sessions {
  /** @param check runs in the transaction of the new session */
  const begin = async (session: NewSession, check?: (tx: Transaction) => Promise<void>) => {
    const { principal, displayName, groups, via, requestId } = session;
    const token = newToken('session');
    const createdAtMs = nowMs();
    const expiresAtMs = createdAtMs + session.lifetimeMs;
    await store.mutate({ kind: 'installation' }, async (tx) => {
      await check?.(tx);
      await tx.operators.addSession({
        tokenHash: tokenHash(token),
        principal,
        displayName,
        groups: JSON.stringify(groups),
        createdAtMs,
        expiresAtMs,
      });
      return {
        result: undefined,
        audit: [
          {
            kind: 'proofgate.control.session.start',
            actor: principal,
            resource: { kind: 'session', id: sessionIdOf(tokenHash(token)) },
            place: {},
            after: { via, groups, expires_at: new Date(expiresAtMs).toISOString() },
            requestId,
          },
        ],
      };
    });
    return { token, expiresAtMs };
  };
  return {
    start(identity, via, requestId) {
      const { displayName, groups } = identity;
      const principal = operatorPrincipal(identity);
      return begin({ principal, displayName, groups, via, lifetimeMs, requestId });
    },

    startBootstrap(bootstrapToken, requestId) {
      const session = {
        principal: BOOTSTRAP_ACTOR,
        displayName: 'bootstrap token',
        groups: [],
        via: 'bootstrap_token',
        lifetimeMs: Math.min(lifetimeMs, MAX_BOOTSTRAP_SESSION_MS),
        requestId,
      } as const;
      return begin(session, async (tx) => {
        const isCurrent = await isBootstrapToken(tx, tokenHash(bootstrapToken));
        if (!isCurrent) throw new ApiProblem('authentication_required');
      });
    },

    async end(token, requestId) {
      const hash = tokenHash(token);
      const session = await store.read((tx) => tx.operators.session(hash));
      if (session === undefined) return;
      await store.mutate({ kind: 'installation' }, async (tx) => {
        await tx.operators.removeSession(hash);
        return {
          result: undefined,
          audit: [
            {
              kind: 'proofgate.control.session.end',
              actor: session.principal,
              resource: { kind: 'session', id: sessionIdOf(tokenHash(token)) },
              place: {},
              requestId,
            },
          ],
        };
      });
    },
  };
}

/**
 * The two cookies that Control sets: the session's, and one that binds a sign-in to the browser that began it. Both are
 * host-only, HttpOnly and SameSite.
 * Source: RFC 6265bis section 4.1.3 (`__Host-`), docs/operate/control.md "Operators".
 */
export interface BrowserCookies {
  readonly session: string;
  readonly signIn: string;
  /** Whether browsers send them over TLS only. */
  readonly secure: boolean;
}

/**
 * The `__Host-` prefix requires TLS. If any public URL is plain HTTP, the names have no prefix.
 * @param publicUrls values of `--public-url`
 */
export function browserCookies(publicUrls: readonly string[]): BrowserCookies {
  const secure = publicUrls.every((url) => url.startsWith('https://'));
  const prefix = secure ? '__Host-' : '';
  return { session: `${prefix}proofgate_session`, signIn: `${prefix}proofgate_sign_in`, secure };
}

/** `__Host-` requires Path=/, Secure and no Domain. `Lax` lets the identity provider's redirect carry the cookies. */
export function cookieOptions({ secure }: BrowserCookies) {
  return { path: '/', httpOnly: true, secure, sameSite: 'lax' } as const;
}
