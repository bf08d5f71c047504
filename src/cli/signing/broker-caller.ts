/** Creates a caller that signs with passports that it requests from a broker. */

import { openIdentitySource } from '../../caller/broker/broker-identity.ts';
import type { BrokerCallPlan } from '../../caller/broker/broker-settings.ts';
import { signingProfilesOf } from '../../caller/broker/broker-state.ts';
import { withBroker } from '../../caller/broker/passport-set.ts';
import { readProfileFile } from '../../caller/profiles/profile-file.ts';
import { usageError } from '../../process/program/errors.ts';
import { untilStopped } from '../../process/program/stop-signal.ts';
import type { CallerValues, SigningCaller } from './signing-caller.ts';

/** Asks the broker for the profiles, unless there is a file, and for a passport. @throws as `readLocalCaller` */
export function withBrokerCaller<T>(
  plan: BrokerCallPlan,
  { passportFile, profileFile }: CallerValues,
  sign: (caller: SigningCaller) => Promise<T>,
): Promise<T> {
  if (passportFile !== undefined) {
    throw usageError('set_passport_file_or_broker_url', 'give --passport-file or --broker-url, not both');
  }
  const source = openIdentitySource(plan, 'mtls');
  return untilStopped(async (stop) => {
    const identity = await source.current(stop);
    return withBroker({ url: plan.url, identity, stop }, async (broker) => {
      const files =
        profileFile === undefined
          ? signingProfilesOf(await broker.profiles(), "the broker's profiles")
          : [await readProfileFile(profileFile)];
      const { holderKey } = identity.prover;
      const passportFor = async (audience: string) => (await broker.passport(audience)).jws;
      return sign({ holderKey, files, passportFor });
    });
  }).finally(() => source.close());
}
