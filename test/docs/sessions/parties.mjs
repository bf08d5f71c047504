/**
 * Starts the identity provider of a session on loopback, where `ada` of the group `platform` may sign in; with the argument
 * `postgres` also PostgreSQL.
 * Uses test/support as `make tools` compiled them. Writes the addresses to files in the working folder; runs until stopped.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { OIDC_CLIENT_SECRET, startOidcProvider } from '../../../.build/test/support/fakes/oidc-provider.js';

const provider = await startOidcProvider({
  certificate: { cert: readFileSync('tls.crt', 'utf8'), key: readFileSync('tls.key', 'utf8') },
  redirectUris: ['control.shop.example', 'control.example'].map((host) => `https://${host}/auth/callback`),
  claimsIn: 'id_token',
});
provider.accounts.set('ada', { name: 'Ada', groups: ['platform'] });
writeFileSync('oidc-issuer', provider.issuer);
writeFileSync('oidc-secret', `${OIDC_CLIENT_SECRET}\n`, { mode: 0o600 });
if (process.argv.includes('postgres')) {
  const { TestPostgresServer } = await import('../../../.build/test/support/harness/postgres-server.js');
  const server = await TestPostgresServer.start();
  writeFileSync('database-url', `${await server.createDatabase()}\n`, { mode: 0o600 });
}
writeFileSync('parties-ready', '');
setInterval(() => {}, 60_000);
