/** Reads the signing profile files that the broker serves to the callers that they fit. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileFingerprint } from '../../process/files/file-fingerprint.ts';
import { readInputText } from '../../process/files/input-files.ts';
import { systemErrorCode, usageError } from '../../process/program/errors.ts';
import { ClientError } from '../../protocol/client-error.ts';
import type { SigningCoordinates } from '../../protocol/signing-profile.ts';
import { parseProfileYaml, parseSigningProfiles } from '../../protocol/signing-profile-file.ts';
import type { SigningProfiles } from '../broker-ports.ts';

const MAX_PROFILE_BYTES = 1024 * 1024;

interface ProfileFile {
  readonly coordinates: SigningCoordinates;
  readonly document: unknown;
}

/** @throws CliError `profiles_unusable`, `profile_invalid`, or as `readInputText` */
export async function readProfileDirectory(directory: string): Promise<SigningProfiles> {
  const files = await Promise.all((await profileFilesIn(directory)).map(readProfileFile));
  return {
    fitting: (issuer, trustDomain, subject) =>
      files
        .filter(
          ({ coordinates }) =>
            coordinates.issuer === issuer &&
            coordinates.trustDomain === trustDomain &&
            coordinates.subject === subject,
        )
        .map(({ document }) => document),
  };
}

/** Names that begin with `.` are ignored, as Kubernetes keeps the files of a mounted ConfigMap in `..data`. */
async function profileFilesIn(directory: string): Promise<readonly string[]> {
  try {
    const names = await readdir(directory);
    const wanted = names.filter((name) => /^[^.].*\.(?:ya?ml|json)$/.test(name)).sort();
    return wanted.map((name) => join(directory, name));
  } catch (error) {
    throw usageError(
      'profiles_unusable',
      `--profiles: ${directory} cannot be read (${systemErrorCode(error) ?? 'error'})`,
    );
  }
}

async function readProfileFile(path: string): Promise<ProfileFile> {
  const text = await readInputText(path, MAX_PROFILE_BYTES);
  try {
    return {
      coordinates: parseSigningProfiles(text, path).coordinates,
      document: parseProfileYaml(text, path),
    };
  } catch (error) {
    throw error instanceof ClientError ? usageError('profile_invalid', error.message) : error;
  }
}

/** Changes when a file is added, removed, replaced or written. */
export async function directoryFingerprint(directory: string): Promise<string> {
  const paths = await profileFilesIn(directory);
  return `${paths.join('\n')}\n${await fileFingerprint(...paths)}`;
}
