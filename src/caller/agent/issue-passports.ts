/** Gets one set from a broker: profiles, and a passport for each audience that they name. */

import { readInputText } from '../../process/files/input-files.ts';
import { parseProfileYaml } from '../../protocol/signing-profile-file.ts';
import { BrokerError } from '../broker/broker-error.ts';
import { signingProfilesOf } from '../broker/broker-state.ts';
import type { IdentitySource } from '../broker/identity-source.ts';
import { type PassportSet, withBroker } from '../broker/passport-set.ts';
import type { ServiceUrl } from '../service/service-url.ts';

export interface PassportWishes {
  readonly url: ServiceUrl;
  readonly source: IdentitySource;
  /** Audiences in addition to those of the profiles. */
  readonly audiences: readonly string[];
  /** Undefined to use the broker's profiles. */
  readonly profileFile: string | undefined;
}

const MAX_PROFILE_BYTES = 4 * 1024 * 1024;

/** Fails when one of the passports cannot be issued. @throws BrokerError, ClientError, CliError */
export async function issuePassports(
  { audiences, profileFile, source, url }: PassportWishes,
  stop: AbortSignal,
): Promise<PassportSet> {
  const identity = await source.current(stop);
  return withBroker({ url, identity, stop }, async (broker) => {
    const documents = profileFile === undefined ? await broker.profiles() : [await readDocument(profileFile)];
    const files = signingProfilesOf(documents, profileFile ?? "the broker's profiles");
    const named = files.flatMap(({ profiles }) => profiles.map(({ audience }) => audience));
    const passports = [];
    for (const audience of new Set([...audiences, ...named])) passports.push(await broker.passport(audience));
    if (passports.length === 0) throw noAudience();
    return { key: identity.prover.holderKey, svid: identity.svid, passports, profileDocuments: documents };
  });
}

/** The caller validates the document like the broker's. */
async function readDocument(file: string): Promise<unknown> {
  return parseProfileYaml(await readInputText(file, MAX_PROFILE_BYTES), file);
}

function noAudience(): BrokerError {
  const text =
    'no signing profile of the broker fits this caller: name a file with --profile-file, or an --audience';
  return new BrokerError('refused', 'audience_missing', text);
}
