/** Who signs with a passport from a broker, asked for now. */
import { signingProfilesOf } from '../../client/broker/broker-state.ts';
import { withBroker } from '../../client/broker/passport-set.ts';
import { usageError } from '../../process/program/errors.ts';
import { untilStopped } from '../../process/program/stop-signal.ts';
import { openIdentitySource } from '../../workload/broker-identity.ts';
import type { BrokerCallPlan } from '../../workload/broker-settings.ts';
import { readProfileFile } from '../../workload/profile-file.ts';
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
