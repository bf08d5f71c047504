/** A real Keycloak as scripts/install-keycloak.sh installs it, on loopback HTTPS with its database in memory. */
import { existsSync } from 'node:fs';
import { Agent, request } from 'undici';
import type { CertificateFiles } from '../../support/harness/certificates.ts';
import { checkoutPath } from '../../support/harness/checkout.ts';
import { describeExit, startChild } from '../../support/harness/child.ts';
import { freePort } from '../../support/harness/free-port.ts';
import { waitFor } from '../../support/wait.ts';

const HOME = checkoutPath('.cache', 'keycloak');
const ADMIN = 'admin';

/** Why the tests of Keycloak cannot run here. */
export function keycloakUnavailable(): string | undefined {
  return existsSync(HOME) ? undefined : 'run make keycloak, which needs a JDK and Maven';
}

export interface Keycloak {
  readonly origin: string;
  /** Posts to the admin API, below `/admin/realms`. */
  create(path: string, representation: object): Promise<void>;
  stop(): Promise<void>;
}

/** @param certificate good for `localhost`, of the CA */
export async function startKeycloak(certificate: CertificateFiles, ca: string): Promise<Keycloak> {
  const port = await freePort();
  const origin = `https://localhost:${port}`;
  const env = {
    ...{ KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN, KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN },
    JAVA_OPTS_APPEND: '-Xmx512m -XX:TieredStopAtLevel=1',
  };
  const child = startChild({
    command: `${HOME}/bin/kc.sh`,
    args: [
      ...['start', '--optimized', '--cache=local', `--hostname=${origin}`, '--http-host=127.0.0.1'],
      ...[`--https-port=${port}`, `--https-certificate-file=${certificate.certPath}`],
      `--https-certificate-key-file=${certificate.keyPath}`,
    ],
    env,
  });
  const dispatcher = new Agent({ connect: { ca } });
  const post = async (path: string, headers: Readonly<Record<string, string>>, body: string) => {
    const answer = await request(`${origin}${path}`, { dispatcher, method: 'POST', headers, body });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${text}`);
    return text;
  };
  const stop = async () => {
    await child.stop();
    await dispatcher.close();
  };
  try {
    const form = new URLSearchParams({
      ...{ grant_type: 'password', client_id: 'admin-cli', username: ADMIN, password: ADMIN },
    });
    const token = await waitFor('Keycloak to start', async () => {
      const status = child.exitStatus();
      if (status !== undefined)
        return { ended: describeExit(status, [...child.stdoutLines, ...child.stderrLines]) };
      const type = { 'content-type': 'application/x-www-form-urlencoded' };
      const text = await post('/realms/master/protocol/openid-connect/token', type, form.toString());
      return JSON.parse(text) as { readonly access_token: string };
    });
    if ('ended' in token) throw new Error(`Keycloak: ${token.ended}`);
    const headers = { authorization: `Bearer ${token.access_token}`, 'content-type': 'application/json' };
    const create = async (path: string, representation: object) => {
      await post(`/admin/realms${path}`, headers, JSON.stringify(representation));
    };
    return { origin, create, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
