/** What gives a SPIFFE workload its passport: a Workload API with SVIDs of a throw-away authority, and `proofgate broker`. */
import { writeFile } from 'node:fs/promises';
import { SpiffeAuthority } from '../test/support/fakes/spiffe-authority.ts';
import { FakeWorkloadApi } from '../test/support/fakes/workload-api.ts';
import { makeCertificates } from '../test/support/harness/certificates.ts';
import { freePort } from '../test/support/harness/free-port.ts';
import { type Service, startService } from '../test/support/harness/sidecar.ts';
import type { DemoFiles } from './files.ts';
import { listeningMember } from './listening.ts';
import type { Operator, Tell } from './onboarding.ts';
import type { Parts } from './parts.ts';
import { type ProofgateCli, proofgateChild } from './proofgate-cli.ts';
import { brokerIssuer, siteId, spiffeWorkload, trustDomain } from './site.ts';

export interface BrokerPlane {
  readonly broker: Service;
  readonly brokerUrl: string;
}

const loopback = '127.0.0.1';

/** @throws SetupError */
export async function startBrokerPlane(
  parts: Parts,
  files: DemoFiles,
  cli: ProofgateCli,
): Promise<BrokerPlane> {
  const certificates = await parts.start({
    name: "the broker's certificate",
    advice: 'is openssl installed?',
    start: () => makeCertificates('localhost', 'spiffe://demo.example/unused', [loopback]),
    stop: (made) => made.remove(),
  });
  await writeFile(files.brokerCa, certificates.ca.cert);
  await startSvids(parts, files);
  const keys = ['--key-dir', files.brokerKeys, '--trust-domain', trustDomain];
  await cli.runForJson(['broker', 'rotate-key', ...keys]);
  const brokerUrl = `https://${loopback}:${await freePort()}`;
  const { certPath, keyPath } = certificates.server;
  const broker = await parts.start({
    name: 'proofgate broker',
    start: () =>
      startService({
        ...proofgateChild([
          ...['broker', '--public-url', brokerUrl, '--issuer', brokerIssuer],
          ...['--listen', new URL(brokerUrl).host, '--admin-listen', `${loopback}:0`],
          ...['--tls-cert-file', certPath, '--tls-key-file', keyPath],
          ...['--key-dir', files.brokerKeys, '--profiles', files.brokerProfiles],
          ...['--spiffe-socket', `unix:${files.workloadApi}`],
        ]),
        readyUrl: (lines) => {
          const address = listeningMember(lines, 'admin_listen');
          return address && `http://${address}/readyz`;
        },
      }),
    stop: (started) => started.stop(),
  });
  return { broker, brokerUrl };
}

async function startSvids(parts: Parts, files: DemoFiles): Promise<void> {
  const authority = SpiffeAuthority.create(trustDomain);
  const spiffeId = spiffeWorkload.subject;
  const workloadApi = new FakeWorkloadApi(files.workloadApi);
  workloadApi.serveSvids([{ spiffeId, svid: authority.issueSvid(spiffeId), authority }]);
  await parts.start({
    name: 'Workload API',
    start: () => workloadApi.start(),
    stop: (started) => started.stop(),
  });
}

/** What the operator does for a new broker: pins its keys, and gives it the workload's signing profile. @throws SetupError */
export async function trustBroker(operator: Operator, files: DemoFiles, tell: Tell): Promise<void> {
  const named = ['--site', siteId, '--issuer', brokerIssuer];
  const pinning = ['--broker-ca-file', files.brokerCa, '--yes'];
  await operator.ctl('broker-keys', 'refresh', ...named, ...pinning);
  tell('ctl broker-keys refresh', `the site trusts the keys of ${brokerIssuer}`);
  const profile = ['--subject', spiffeWorkload.subject, '--out', files.brokerProfile];
  await operator.ctl('get', 'profiles', ...named, ...profile);
  tell(
    'ctl get profiles',
    `the broker has what ${spiffeWorkload.name} signs with: ${spiffeWorkload.subject}`,
  );
}
