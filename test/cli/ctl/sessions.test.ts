/** Plays `sessions.txt`: operators who signed in see and end sessions. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, it } from '@jest/globals';
import { runInProcess } from '../../support/cli/in-process.ts';
import { playTranscript } from '../../support/cli/play-transcript.ts';
import { parseTranscript } from '../../support/cli/transcript.ts';
import { OperatorFixture } from '../../support/control/operators-fixture.ts';

const TRANSCRIPT = join(import.meta.dirname, 'sessions.txt');

let fixture: OperatorFixture;
let directory: string;

beforeAll(async () => {
  fixture = await OperatorFixture.start();
  directory = await mkdtemp(join(tmpdir(), 'proofgate-sessions-'));
  await writeFile(join(directory, 'ca.pem'), fixture.ca);
  for (const [file, name] of [
    ['ada', 'Ada'],
    ['other', 'Ada'],
    ['eve', 'Eve'],
  ] as const) {
    const account = name.toLowerCase();
    fixture.provider.accounts.set(account, { name });
    const browser = fixture.browser();
    await fixture.signIn(browser, account);
    const token = browser.cookie(fixture.url, '__Host-proofgate_session');
    await writeFile(join(directory, `${file}.token`), `${token}\n`, { mode: 0o600 });
  }
});
afterAll(async () => {
  await fixture.close();
  await rm(directory, { recursive: true });
});

it('plays sessions.txt', async () => {
  const transcript = parseTranscript(readFileSync(TRANSCRIPT, 'utf8'));
  await playTranscript(transcript, (args, { env }) => runInProcess(args, env), directory, {
    ADMIN: join(fixture.directory, 'bootstrap-token'),
    CA: join(directory, 'ca.pem'),
    CONTROL: fixture.url,
    DIR: directory,
  });
});
