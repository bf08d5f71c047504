/** Operators without sign-in: each bearer token, or session cookie, maps to a person with roles. */

import { ApiProblem } from '../../../src/control/domain/api-problem.ts';
import type { HeldRole } from '../../../src/control/domain/roles.ts';
import type { Credentials, Operators, Principal } from '../../../src/control/operators/operators.ts';

export class FakeOperators implements Operators {
  readonly #byToken = new Map<string, Principal>();

  /** @returns the token, which is also good as a session cookie when `via` is `session` */
  add(
    name: string,
    roles: readonly HeldRole[],
    via: Principal['via'] = 'access_token',
    expiresAtMs?: number,
  ): string {
    const token = `fake-${name}`;
    this.#byToken.set(token, { actor: `token:${name}`, displayName: name, via, roles, expiresAtMs });
    return token;
  }

  /** Ends the token. */
  remove(token: string): void {
    this.#byToken.delete(token);
  }

  async authenticate({ authorization, sessionCookie }: Credentials): Promise<Principal> {
    const bearer = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1];
    const token = authorization === undefined ? sessionCookie : bearer;
    const principal = token === undefined ? undefined : this.#byToken.get(token);
    const cameByCookie = authorization === undefined;
    if (principal === undefined || cameByCookie !== (principal.via === 'session')) {
      throw new ApiProblem('authentication_required');
    }
    return principal;
  }
}
