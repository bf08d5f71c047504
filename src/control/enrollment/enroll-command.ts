/**
 * The Enrollment Command Generator: what somebody runs, or puts into a pod template, to enroll under a policy.
 * Source: specification "Enrollment Command Generator", "Command-line tool"; docs/control.md "Enrollment".
 */
import { Document, type Pair, type Scalar, visit } from 'yaml';
import type { EnrollmentCommand } from '../api/contract/enrollment-policies.ts';
import { Refusal } from '../domain/refusal.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import { requirePolicy } from './policies.ts';
import { serviceAccountOf } from './verified-subject.ts';

/** Where the snippet's volumes are mounted. */
const TOKEN_DIRECTORY = '/var/run/secrets/proofgate';
const KEY_DIRECTORY = '/var/run/proofgate';
export const TOKEN_FILE = `${TOKEN_DIRECTORY}/token`;
export const KEY_FILE = `${KEY_DIRECTORY}/key.pem`;
const KEY_VOLUME = 'proofgate-key';
const TOKEN_VOLUME = 'proofgate-token';

/** Kubernetes projects no token for less (specification "Limits"). */
const MIN_TOKEN_SECONDS = 600;

export interface EnrollCommandsOptions {
  readonly store: ControlStore;
  /** The first of Control's --public-url values, without a slash at its end. */
  readonly controlUrl: string;
  /** Holds the `proofgate` binary; workloads' clusters pull it. */
  readonly image: string;
}

export class EnrollCommands {
  readonly #options: EnrollCommandsOptions;

  constructor(options: EnrollCommandsOptions) {
    this.#options = options;
  }

  /** @throws Refusal `not_found`, `policy_not_active` */
  async commandOf(policyId: string): Promise<EnrollmentCommand> {
    const { store, controlUrl, image } = this.#options;
    const { policy, audience } = await store.read(async (tx) => {
      const row = await requirePolicy(tx, policyId);
      const revision = await tx.sources.revision(row.sourceId, row.sourceRevision);
      return { policy: row, audience: revision?.audience };
    });
    if (policy.state !== 'active' || audience === undefined) throw new Refusal('policy_not_active');
    const command = enrollArguments(controlUrl, policy.reference);
    return {
      policy_id: policy.id,
      control_url: controlUrl,
      reference: policy.reference,
      command: command.map(quoteForShell).join(' '),
      init_container: initContainer({ command, policy, audience, image }),
    };
  }
}

/** Every value that may begin with a dash is joined to its flag. */
function enrollArguments(controlUrl: string, reference: string): readonly string[] {
  return [
    'proofgate',
    'enroll',
    `--control-url=${controlUrl}`,
    `--policy=${reference}`,
    `--private-key-out=${KEY_FILE}`,
    `--proof-file=${TOKEN_FILE}`,
  ];
}

/** One word of a POSIX shell, whatever it holds. */
export function quoteForShell(word: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

interface SnippetFacts {
  readonly command: readonly string[];
  readonly policy: RowOf<'enrollmentPolicy'>;
  readonly audience: string;
  readonly image: string;
}

const COMMENTS: { readonly [path: string]: string } = {
  serviceAccountName: " The policy's verified subject.",
  securityContext:
    ' The key file is for its owner alone: the containers that sign must run as the same user as this one.',
  volumeMounts: ` Mount ${KEY_VOLUME} in the containers that sign, too.`,
  expirationSeconds: ' A key ends with its token at the latest.',
  medium: ' The private key never reaches a disk.',
};

/** Parts of a pod's `spec`. */
function initContainer({ command, policy, audience, image }: SnippetFacts): string {
  const account = serviceAccountOf(policy.verifiedSubject);
  const document = new Document({
    ...(account === undefined ? {} : { serviceAccountName: account.name }),
    initContainers: [
      {
        name: 'proofgate-enroll',
        image,
        command,
        securityContext: {
          runAsNonRoot: true,
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          { name: TOKEN_VOLUME, mountPath: TOKEN_DIRECTORY, readOnly: true },
          { name: KEY_VOLUME, mountPath: KEY_DIRECTORY },
        ],
      },
    ],
    volumes: [
      {
        name: TOKEN_VOLUME,
        projected: {
          sources: [
            { serviceAccountToken: { audience, expirationSeconds: tokenSeconds(policy), path: 'token' } },
          ],
        },
      },
      { name: KEY_VOLUME, emptyDir: { medium: 'Memory' } },
    ],
  });
  explain(document);
  return document.toString({ lineWidth: 0 });
}

/** No longer than the key may live, since a token is good for whoever holds it. */
function tokenSeconds({ maxKeyLifetimeSeconds }: RowOf<'enrollmentPolicy'>): number {
  return Math.max(MIN_TOKEN_SECONDS, maxKeyLifetimeSeconds);
}

function explain(document: Document): void {
  visit(document, {
    Pair(_, { key }: Pair<unknown, unknown>) {
      const name = (key as Scalar).value;
      const comment = typeof name === 'string' ? COMMENTS[name] : undefined;
      if (comment !== undefined) (key as Scalar).commentBefore = comment;
    },
  });
}
