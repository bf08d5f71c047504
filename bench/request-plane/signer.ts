/** Measures what `proofgate signer` costs as an egress proxy, beside a bare proxy with undici in the same run. */
import { join } from 'node:path';
import { readSigningProfiles } from '../../src/protocol/signing-profile.ts';
import { writeEnrolledKey } from '../../test/support/caller/enrolled-key.ts';
import { startProofgate } from '../../test/support/harness/sidecar.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { encodeGet } from './http-sender.ts';
import { percentiles } from './in-turns.ts';
import {
  type Contender,
  contender,
  figuresOf,
  IN_TURNS,
  loadInTurns,
  READY,
  startOf,
  startServer,
} from './proxy-contenders.ts';
import { AUDIENCE, AUTH_SITE, ISSUER, keyName, newKey, TRUST_DOMAIN } from './site.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

export const signer: Part = {
  name: 'signer',
  title: `GETs of a program to an API through the signer, ${IN_TURNS}`,
  run: () => inWorkspace(measure),
};

async function measure(workspace: Workspace): Promise<PartResult> {
  const api = `http://127.0.0.1:${await startServer(workspace, {})}`;
  const bare = await contender('bare undici proxy', () => startServer(workspace, { upstream: api }));
  const signing = await contender('proofgate signer', () => startSigner(workspace, api));
  await loadInTurns(workspace, [bare, signing], requestsTo);
  const added = (share: number) => {
    const without = percentiles(bare.latenciesMs, share);
    return percentiles(signing.latenciesMs, share).map((withIt, round) => withIt - (without[round] ?? 0));
  };
  return {
    figures: [
      ...[bare, signing].flatMap(figuresOf),
      figure('added by signing: p50', 'ms', added(0.5)),
      figure('added by signing: p99', 'ms', added(0.99)),
    ],
    bounds: [],
  };
}

function requestsTo({ port }: Contender, count: number): readonly Buffer[] {
  const authority = `127.0.0.1:${port}`;
  return Array.from({ length: count }, (_, index) =>
    encodeGet({ path: `/v1/orders/${index}`, authority, lines: [['accept', '*/*']] }),
  );
}

async function startSigner(workspace: Workspace, api: string): Promise<number> {
  const keyFile = join(workspace.directory, 'signer-key.pem');
  const file = readSigningProfiles(
    {
      ...{ auth_site: AUTH_SITE, key_id: keyName(0), issuer: ISSUER, trust_domain: TRUST_DOMAIN },
      ...{ subject: 'client:0', key_binding: 'software' },
      profiles: [
        {
          ...{ route_id: 'orders', method: 'GET', path_template: '/v1/orders/{order_id}' },
          ...{ audience: AUDIENCE, origins: [api] },
        },
      ],
    },
    'profiles',
  );
  await writeEnrolledKey(keyFile, { key: newKey(), file });
  const listeners = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const service = workspace.started(
    await startProofgate(['signer', '--key', keyFile, ...listeners, '--upstream', api], READY),
  );
  return Number(startOf(service.stderrLines)?.listen.split(':')[1]);
}
