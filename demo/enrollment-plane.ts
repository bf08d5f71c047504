/** The services that turn tokens into keys: a token issuer like a cluster's, and `proofgate control`. */
import { writeFile } from 'node:fs/promises';
import {
  type ServiceAccountIssuer,
  startServiceAccountIssuer,
} from '../test/support/fakes/service-account-issuer.ts';
import { makeCertificates } from '../test/support/harness/certificates.ts';
import { freePort } from '../test/support/harness/free-port.ts';
import { type Service, startService } from '../test/support/harness/sidecar.ts';
import type { DemoFiles } from './files.ts';
import { listeningMember } from './listening.ts';
import type { Parts } from './parts.ts';
import { proofgateChild } from './proofgate-cli.ts';
import { type Caller, tokenAudience, workloadOf } from './site.ts';

export interface EnrollmentPlane {
  readonly issuer: ServiceAccountIssuer;
  readonly control: Service;
  readonly controlVersion: string;
  /** The URL that clients get. */
  readonly controlUrl: string;
}

const loopback = '127.0.0.1';

/** @throws SetupError */
export async function startEnrollmentPlane(parts: Parts, files: DemoFiles): Promise<EnrollmentPlane> {
  const issuer = await startIssuer(parts, files);
  const controlUrl = `http://${loopback}:${await freePort()}`;
  const control = await startControl(parts, files, controlUrl);
  const controlVersion = listeningMember(control.stderrLines, 'version') ?? '';
  return { issuer, control, controlVersion, controlUrl };
}

async function startIssuer(parts: Parts, files: DemoFiles): Promise<ServiceAccountIssuer> {
  const certificates = await parts.start({
    name: "the issuer's certificate",
    advice: 'is openssl installed?',
    start: () => makeCertificates('localhost', 'spiffe://demo.example/unused', [loopback]),
    stop: (made) => made.remove(),
  });
  await writeFile(files.issuerCa, certificates.ca.cert);
  return parts.start({
    name: 'token issuer',
    start: () =>
      startServiceAccountIssuer({
        certificate: certificates.server,
        hostname: loopback,
        path: '/clusters/demo',
      }),
    stop: (started) => started.close(),
  });
}

function startControl(parts: Parts, files: DemoFiles, controlUrl: string): Promise<Service> {
  return parts.start({
    name: 'proofgate control',
    start: () =>
      startService({
        ...proofgateChild([
          ...['control', '--data-dir', files.controlData],
          ...['--listen', new URL(controlUrl).host, '--admin-listen', `${loopback}:0`],
          // The issuer is on this machine and has a self-made certificate: Control rejects both without these settings.
          ...['--allow-issuer-network', `${loopback}/32`, '--issuer-ca-file', files.issuerCa],
        ]),
        readyUrl: (lines) => {
          const address = listeningMember(lines, 'admin_listen');
          return address && `http://${address}/readyz`;
        },
      }),
    stop: (started) => started.stop(),
  });
}

/** What a cluster's kubelet does: puts the pod's projected token into its file. */
export async function projectToken(
  issuer: ServiceAccountIssuer,
  files: DemoFiles,
  { caller, pod, expiresInSeconds }: ProjectedToken,
): Promise<void> {
  const { namespace, serviceAccount } = workloadOf(caller);
  const token = issuer.token({ namespace, serviceAccount, audience: tokenAudience, pod, expiresInSeconds });
  await writeFile(files.token(pod), token, { mode: 0o600 });
}

export interface ProjectedToken {
  readonly caller: Caller;
  readonly pod: string;
  readonly expiresInSeconds: number;
}
