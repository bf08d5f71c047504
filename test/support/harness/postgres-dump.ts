/** Runs `pg_dump` and `pg_restore` on a database of the tests' server, as an operator does. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { programPath, type TestPostgresServer } from './postgres-server.ts';

const run = promisify(execFile);

/** In PostgreSQL's own format: for {@link restoreDatabase}. */
export async function dumpDatabase(url: string, file: string): Promise<void> {
  await run(programPath('pg_dump'), ['--format=custom', `--file=${file}`], { env: connection(url) });
}

/** As SQL text, everything in it readable. */
export async function dumpText(url: string, file: string): Promise<void> {
  await run(programPath('pg_dump'), ['--format=plain', `--file=${file}`], { env: connection(url) });
}

/** Replaces the existing database with the dump and closes its open connections. */
export async function restoreDatabase(server: TestPostgresServer, url: string, file: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  const maintenance = server.urlOf('postgres');
  await server.query(maintenance, `drop database ${name} with (force)`);
  await server.query(maintenance, `create database ${name}`);
  const args = ['--exit-on-error', `--dbname=${name}`, file];
  await run(programPath('pg_restore'), args, { env: connection(url) });
}

/** The password is not in the arguments. */
function connection(url: string): NodeJS.ProcessEnv {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    ...process.env,
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: password,
    PGDATABASE: pathname.slice(1),
  };
}
