/**
 * `make verify-release PUBLIC_KEY=FILE`: checks that a release is complete and matches its signature. It prints a line
 * on standard error for each fault and exits with 1; it exits with 2 when it could check nothing. Usage: verify.mjs
 * --public-key=FILE [--release=DIRECTORY] [--version=VERSION]
 */
import { createHash, verify } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Failure, tellingFailures } from '../failure.mjs';
import { CHECKSUMS, filesOf, SIGNATURE } from './files.mjs';
import { readPublicKey } from './keys.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SIGNATURE_BYTES = 64;
const LINE = /^([0-9a-f]{64}) {2}([A-Za-z0-9][\w.-]*)$/;

await tellingFailures(async () => {
  const options = {
    'public-key': { type: 'string' },
    version: { type: 'string' },
    release: { type: 'string', default: join(ROOT, '.build', 'release') },
  };
  const { values } = parseArgs({ options });
  const { 'public-key': keyFile, release, version: wanted } = values;
  const key = readPublicKey(keyFile);
  if (!existsSync(release))
    throw new Failure('release_missing', `${release} is not there: make release KEY=FILE`);
  const { faults, version } = examine(release, key);
  if (wanted && version !== undefined && version !== wanted) {
    faults.push({
      code: 'version_other',
      text: `this is ${version}, not ${wanted}: an old release is signed as well as a new one`,
    });
  }
  for (const { code, text } of faults) process.stderr.write(`error: ${code}: ${text}\n`);
  if (faults.length > 0) process.exitCode = 1;
  else console.log(`${release}: version ${version}, the signature holds, and every file is as it was signed`);
});

/** @returns the version of its checksums, if they have one version, and the faults */
function examine(release, key) {
  const names = readdirSync(release).sort();
  const checksums = readIfThere(release, CHECKSUMS);
  const signature = readIfThere(release, SIGNATURE);
  if (checksums === undefined) {
    const text = `${CHECKSUMS} is not there: nothing says what the files should be`;
    return { faults: [{ code: 'checksums_missing', text }] };
  }
  const text = checksums.toString('utf8');
  const faults = [...signatureFaults(checksums, signature, key), ...fileFaults(release, names, text)];
  return { faults, version: versionIn(text) };
}

/** The version, from the name of the npm package in the checksums. */
function versionIn(checksums) {
  return /^[0-9a-f]{64} {2}proofgate-(\d.*)\.tgz$/m.exec(checksums)?.[1];
}

function readIfThere(release, name) {
  const file = join(release, name);
  return existsSync(file) ? readFileSync(file) : undefined;
}

function signatureFaults(checksums, signature, key) {
  if (signature === undefined) return [{ code: 'signature_missing', text: `${SIGNATURE} is not there` }];
  if (signature.length !== SIGNATURE_BYTES) {
    return [
      {
        code: 'signature_malformed',
        text: `${SIGNATURE} has ${signature.length} bytes, not ${SIGNATURE_BYTES}`,
      },
    ];
  }
  if (verify(null, checksums, key, signature)) return [];
  return [
    {
      code: 'signature_wrong',
      text: `${SIGNATURE} is not of this ${CHECKSUMS} by this key: trust none of the files`,
    },
  ];
}

function fileFaults(release, names, checksums) {
  const lines = checksums.split('\n');
  if (lines.pop() !== '' || lines.some((line) => !LINE.test(line))) {
    return [{ code: 'checksums_malformed', text: `${CHECKSUMS} is not lines of a SHA-256 and a name` }];
  }
  const listed = new Map(lines.map((line) => LINE.exec(line).slice(1).reverse()));
  const others = names.filter((name) => !listed.has(name) && name !== CHECKSUMS && name !== SIGNATURE);
  return [
    ...[...listed].flatMap(([name, sha256]) => fileFault(release, name, sha256)),
    ...others.map((name) => ({
      code: 'file_unlisted',
      text: `${name} is in no line of ${CHECKSUMS}: it was not signed`,
    })),
    ...incompleteness(versionIn(checksums), [...listed.keys()]),
  ];
}

function fileFault(release, name, sha256) {
  const content = readIfThere(release, name);
  if (content === undefined)
    return [{ code: 'file_missing', text: `${name} is in ${CHECKSUMS}, and is not there` }];
  if (createHash('sha256').update(content).digest('hex') === sha256) return [];
  return [{ code: 'file_changed', text: `${name} is not what was signed` }];
}

/** Checks that a release has one version's files, all of them and no others. */
function incompleteness(version, listed) {
  const expected = version === undefined ? [] : Object.values(filesOf(version)).sort();
  if (expected.length > 0 && expected.join() === listed.toSorted().join()) return [];
  return [
    {
      code: 'release_incomplete',
      text: `${CHECKSUMS} does not list the packages, the chart and the bills of materials of one version`,
    },
  ];
}
