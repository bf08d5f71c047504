/** What signing a request costs in each language, beside a bare Ed25519 signature of that language in the same run. */
import { execFileSync } from 'node:child_process';
import { sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RequestSigner } from '../../src/caller/sign/request-signer.ts';
import { generateSigningKey } from '../../src/protocol/signing.ts';
import { parseSigningProfiles } from '../../src/protocol/signing-profile-file.ts';
import { writeEnrolledKey } from '../../test/support/caller/key-files.ts';
import { figure, type Part, type PartResult } from '../report.ts';
import { median } from '../statistics.ts';

const ROUNDS = Number(process.env.PROOFGATE_BENCH_ROUNDS ?? 7);
const SIGNATURES_A_ROUND = 5000;
/** The compiled program lies in `.build/bench/sdk/`. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const ORIGIN = 'https://api.shop.example';
const URL_TO_SIGN = `${ORIGIN}/v1/orders`;
const BODY = '{"item":"book","count":2}';

export const sdk: Part = {
  name: 'sdk',
  title: `a signed request beside a bare signature, ${ROUNDS} rounds of ${SIGNATURES_A_ROUND} in turns`,
  run: async () => {
    const languages = { 'Node.js': inNode(), Python: inPython(), Go: inGo() };
    const figures = Object.entries(languages).flatMap(([language, { bare, signed }]) => [
      figure(`${language}: bare Ed25519 signature`, 'µs', bare),
      figure(`${language}: signed request`, 'µs', signed),
      figure(
        `${language}: signed requests a second`,
        '1/s',
        signed.map((us) => 1e6 / us),
      ),
    ]);
    const { bare, signed } = languages['Node.js'];
    const bounds = [
      { name: 'Node.js: signed beside bare', value: median(signed) / median(bare), atMost: 1.5 },
    ];
    return { figures, bounds } satisfies PartResult;
  },
};

/** Microseconds of CPU, one for each round. */
interface Costs {
  readonly bare: readonly number[];
  readonly signed: readonly number[];
}

const key = generateSigningKey('Ed25519');
const identity = {
  ...{ key_id: 'dk_1', issuer: 'https://control.shop.example', subject: 'client:billing' },
  trust_domain: 'shop.example',
};
const profiles = [
  { route_id: 'create', method: 'POST', path_template: '/v1/orders', audience: ORIGIN, origins: [ORIGIN] },
];

function inNode(): Costs {
  const signer = new RequestSigner();
  const document = { ...identity, auth_site: 'shop-eu', key_binding: 'software', profiles };
  const file = parseSigningProfiles(JSON.stringify(document), 'profile');
  signer.replaceIdentity({ key, files: [file], passports: undefined });
  const body = Buffer.from(BODY);
  const message = Buffer.alloc(600);
  const costs = { bare: [] as number[], signed: [] as number[] };
  for (let round = 0; round <= ROUNDS; round++) {
    const bare = cpuUs(() => sign(null, message, key.privateKey));
    const signed = cpuUs(() => signer.sign({ method: 'POST', url: URL_TO_SIGN, headers: [], body }));
    // The first round warms up.
    if (round > 0) {
      costs.bare.push(bare);
      costs.signed.push(signed);
    }
  }
  return costs;
}

function cpuUs(act: () => unknown): number {
  const start = process.cpuUsage();
  for (let i = 0; i < SIGNATURES_A_ROUND; i++) act();
  const { system, user } = process.cpuUsage(start);
  return (system + user) / SIGNATURES_A_ROUND;
}

function inPython(): Costs {
  const folder = mkdtempSync(join(tmpdir(), 'pg-bench-sdk-'));
  try {
    const keyFile = writeEnrolledKey(folder, 'key', {
      key: key.privateKey,
      authSite: 'shop-eu',
      ...identity,
      expiresAt: '2099-01-01T00:00:00Z',
      profiles,
    });
    const paths = ['sdk/python/src', '.cache/sdk-python/packages'].map((path) => join(ROOT, path));
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONPATH: paths.join(':') };
    const counts = [ROUNDS, SIGNATURES_A_ROUND].map(String);
    const args = [join(ROOT, 'bench/sdk/signatures.py'), keyFile, URL_TO_SIGN, ...counts];
    return JSON.parse(execFileSync('python3', args, { env, encoding: 'utf8' }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function inGo(): Costs {
  const options = [`-benchtime=${SIGNATURES_A_ROUND}x`, `-count=${ROUNDS}`, '-cpu=1'];
  const args = ['test', '-run', '^$', '-bench', '.', ...options, '.'];
  const output = execFileSync('go', args, { cwd: join(ROOT, 'sdk/go'), encoding: 'utf8' });
  const costsOf = (name: string) =>
    [...output.matchAll(new RegExp(`^${name}\\s+\\d+\\s+([0-9.]+) ns/op`, 'gm'))].map(
      ([, nanoseconds]) => Number(nanoseconds) / 1000,
    );
  return { bare: costsOf('BenchmarkBareSignature'), signed: costsOf('BenchmarkSign') };
}
