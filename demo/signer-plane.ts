/** `proofgate signer` with the key of billing, and the unchanged program that sends through it. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Service, startService } from '../test/support/harness/sidecar.ts';
import type { ReceivedAnswer } from './answer.ts';
import type { DemoFiles } from './files.ts';
import { listeningMember } from './listening.ts';
import type { Parts } from './parts.ts';
import { proofgateChild } from './proofgate-cli.ts';
import { callers } from './site.ts';

export interface Signer {
  readonly signer: Service;
  /** The base URL of programs that do not sign. */
  readonly signerUrl: string;
}

/** @param origin where it sends what it signs @throws SetupError */
export async function startSigner(parts: Parts, files: DemoFiles, origin: string): Promise<Signer> {
  const signer = await parts.start({
    name: 'proofgate signer',
    start: () =>
      startService({
        ...proofgateChild([
          ...['signer', '--key', files.key(callers.billing.name), '--upstream', origin],
          ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
        ]),
        readyUrl: (lines) => {
          const address = listeningMember(lines, 'admin_listen');
          return address && `http://${address}/readyz`;
        },
      }),
    stop: (started) => started.stop(),
  });
  return { signer, signerUrl: `http://${listeningMember(signer.stderrLines, 'listen')}` };
}

/** The variables of a proxy would send a loopback request elsewhere. */
export const curl = ['curl', '-sS', '--noproxy', '127.0.0.1'];

/** @throws when curl is missing, or gets no answer */
export async function requestWithCurl(url: string): Promise<ReceivedAnswer> {
  const [program = '', ...flags] = curl;
  const written = '\\n%{http_code}';
  const { stdout } = await promisify(execFile)(program, [...flags, '-w', written, url], { timeout: 30_000 });
  const end = stdout.lastIndexOf('\n');
  return { status: Number(stdout.slice(end + 1)), reason: undefined, body: stdout.slice(0, end) };
}
