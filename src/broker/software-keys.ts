/**
 * Reads the file of `--software-keys`: the registered keys and the subject of each.
 * Source: docs/operate/broker.md "Software keys".
 */
import Type from 'typebox';
import { IDENTIFIER_PATTERN } from '../process/http-service/members-contract.ts';
import { isBase64urlOf32Bytes } from '../protocol/base64url.ts';
import { TRUST_DOMAIN_PATTERN } from '../protocol/spiffe-id.ts';
import { BrokerFileError, readConfiguration } from './broker-files.ts';
import { MAX_PASSPORT_TTL_SECONDS, type SoftwareKey, type SoftwareKeys } from './broker-ports.ts';

const closed = { additionalProperties: false } as const;

const SOFTWARE_KEYS_FILE = Type.Object(
  {
    keys: Type.Array(
      Type.Object(
        {
          thumbprint: Type.String(),
          subject: Type.String({ pattern: IDENTIFIER_PATTERN }),
          trust_domain: Type.String({ pattern: TRUST_DOMAIN_PATTERN }),
          max_passport_ttl_seconds: Type.Optional(
            Type.Integer({ minimum: 1, maximum: MAX_PASSPORT_TTL_SECONDS }),
          ),
        },
        closed,
      ),
      { maxItems: 100_000 },
    ),
  },
  closed,
);

/** A software key must never look like a workload that was attested. */
const SPIFFE_SCHEME = /^spiffe:/i;

/** @throws BrokerFileError */
export function parseSoftwareKeys(text: string): SoftwareKeys {
  const keys = new Map<string, SoftwareKey>();
  for (const [i, entry] of readConfiguration(text, SOFTWARE_KEYS_FILE).keys.entries()) {
    const place = `keys.${i}`;
    const { thumbprint, subject, trust_domain, max_passport_ttl_seconds } = entry;
    if (!isBase64urlOf32Bytes(thumbprint)) {
      throw new BrokerFileError(
        `${place}.thumbprint: must be an RFC 7638 thumbprint, as proofgate keygen prints it`,
      );
    }
    if (SPIFFE_SCHEME.test(subject)) {
      throw new BrokerFileError(
        `${place}.subject: must not begin with spiffe:, which attested workloads have`,
      );
    }
    if (keys.has(thumbprint)) throw new BrokerFileError(`${place}.thumbprint: occurs twice`);
    keys.set(thumbprint, {
      subject,
      trustDomain: trust_domain,
      maxPassportTtlSeconds: max_passport_ttl_seconds ?? MAX_PASSPORT_TTL_SECONDS,
    });
  }
  const trustDomains = new Set([...keys.values()].map(({ trustDomain }) => trustDomain));
  return { trustDomains, find: (thumbprint) => keys.get(thumbprint) };
}
