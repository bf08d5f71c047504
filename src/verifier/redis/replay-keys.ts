/** Names of the replay store's keys in Redis. They contain no site name: docs/operate/replay.md. */

export interface ReplayKeys {
  readonly epoch: string;
  /** Followed by the number of the hash: `expires-at` divided by `BUCKET_SECONDS`. */
  readonly bucketPrefix: string;
  /** Followed by the holder's thumbprint. */
  readonly quotaPrefix: string;
  /** Followed by the hash of issuer and subject. */
  readonly subjectQuotaPrefix: string;
}

/** All keys that one script uses share the hash tag, and therefore the slot in a Cluster. */
export function replayKeys(tag: string): ReplayKeys {
  return {
    epoch: `proofgate:{${tag}}:epoch`,
    bucketPrefix: `proofgate:{${tag}}:jti:`,
    quotaPrefix: `proofgate:{${tag}}:quota:`,
    subjectQuotaPrefix: `proofgate:{${tag}}:subject-quota:`,
  };
}
