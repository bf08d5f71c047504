/**
 * The Enrollment Command Generator: the command or pod template with which a workload enrolls under a policy.
 * Source: specification "Enrollment Command Generator", "Command-line tool"; docs/design/enrollment.md "Enrollment".
 */

import { Document, type Pair, type Scalar, visit } from 'yaml';
import type { EnrollmentCommand } from '../contract/sources-contract.ts';
import { ApiProblem } from '../domain/api-problem.ts';
import { requireRow } from '../resource/change.ts';
import type { ControlStore } from '../store/port.ts';
import type { RowOf } from '../store/repositories/records.ts';
import { serviceAccountOf } from './policies.ts';
import type { ProfilesOfClient } from './workload-enrollments.ts';

/** Mount points of the snippet's volumes. */
const TOKEN_DIRECTORY = '/var/run/secrets/proofgate';
const KEY_DIRECTORY = '/var/run/proofgate';
const CA_DIRECTORY = '/etc/proofgate/control-ca';
export const TOKEN_FILE = `${TOKEN_DIRECTORY}/token`;
export const KEY_FILE = `${KEY_DIRECTORY}/key.pem`;
export const CA_FILE = `${CA_DIRECTORY}/ca.crt`;
const KEY_VOLUME = 'proofgate-key';
const TOKEN_VOLUME = 'proofgate-token';
const CA_VOLUME = 'proofgate-control-ca';
/** The application's base URL, when the signer sends its requests on. */
const SIGNER_LISTEN = '127.0.0.1:8081';
/** Container port on which agent and signer answer the kubelet's probes. */
const ADMIN_PORT = { name: 'proofgate-admin', containerPort: 9195 };

/** Minimum lifetime of a projected token in Kubernetes (specification "Limits"). */
const MIN_TOKEN_SECONDS = 600;

export interface EnrollmentCommandOptions {
  readonly store: ControlStore;
  /** The first --public-url value, without a trailing slash. */
  readonly controlUrl: string;
  /** Image with the `proofgate` binary; the workloads' clusters pull it. */
  readonly image: string;
  /** ConfigMap in the workloads' namespace with `ca.crt`, if a private CA signed Control's certificate. */
  readonly caConfigMap: string | undefined;
  readonly profilesOfClient: ProfilesOfClient;
}

/** @throws ApiProblem `not_found`, `policy_not_active` */
export async function enrollmentCommand(
  { store, controlUrl, image, caConfigMap, profilesOfClient }: EnrollmentCommandOptions,
  policyId: string,
): Promise<EnrollmentCommand> {
  const { policy, audience, origins } = await store.read(async (tx) => {
    const row = requireRow(await tx.policies.find(policyId));
    const revision = await tx.sourceRevisions.find(row.sourceId, row.sourceRevision);
    const profiles = await profilesOfClient(tx, row.siteId, row.clientId);
    return {
      policy: row,
      audience: revision?.audience,
      origins: [...new Set(profiles.flatMap((profile) => profile.origins))].toSorted(),
    };
  });
  const isUsable = policy.state === 'active' || policy.state === 'waiting';
  if (!isUsable || audience === undefined) throw new ApiProblem('policy_not_active');
  const facts = { policy, audience, caConfigMap };
  const enroll = commandLine('enroll', controlUrl, facts);
  const agent = commandLine('agent', controlUrl, facts);
  const signer = [...commandLine('signer', controlUrl, facts), ...upstreamFlags(origins)];
  const admin = `--admin-listen=[::]:${ADMIN_PORT.containerPort}`;
  const sidecar = (name: string, command: readonly string[]) =>
    podParts(facts, {
      ...{ name, image, restartPolicy: 'Always', command: [...command, admin], ports: [ADMIN_PORT] },
      ...PROBES,
    });
  return {
    policy_id: policy.id,
    control_url: controlUrl,
    reference: policy.reference,
    command: enroll.map(quoteForShell).join(' '),
    init_container: podParts(facts, { name: 'proofgate-enroll', image, command: enroll }),
    agent_command: agent.map(quoteForShell).join(' '),
    native_sidecar: sidecar('proofgate-agent', agent),
    ...(origins.length === 0
      ? {}
      : {
          signer_command: signer.map(quoteForShell).join(' '),
          signer_sidecar: sidecar('proofgate-signer', signer),
        }),
  };
}

/** One origin is the signer's upstream; each of several has a path prefix of its host's name, with `http_` for plain HTTP. */
function upstreamFlags(origins: readonly string[]): readonly string[] {
  const [only, ...more] = origins;
  const prefixOf = (origin: string) =>
    origin
      .replace('http://', 'http_')
      .replace('https://', '')
      .replaceAll(/[^a-z0-9.-]/g, '_');
  const upstreams =
    more.length === 0
      ? [`--upstream=${only}`]
      : origins.map((origin) => `--route=/${prefixOf(origin)}=${origin}`);
  return [`--listen=${SIGNER_LISTEN}`, ...upstreams];
}

/** Joins values to their flags with `=`, because a value may begin with a dash. */
function commandLine(
  command: 'enroll' | 'agent' | 'signer',
  controlUrl: string,
  { policy, caConfigMap }: SnippetFacts,
): readonly string[] {
  return [
    'proofgate',
    command,
    `--control-url=${controlUrl}`,
    `--policy=${policy.reference}`,
    `--private-key-out=${KEY_FILE}`,
    `--proof-file=${TOKEN_FILE}`,
    ...(caConfigMap === undefined ? [] : [`--control-ca-file=${CA_FILE}`]),
  ];
}

/** Quotes any text as one word of a POSIX shell. */
export function quoteForShell(word: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Allows five minutes for the first key; the application starts once the key is there. */
const PROBES = {
  startupProbe: {
    httpGet: { path: '/readyz', port: ADMIN_PORT.name },
    periodSeconds: 2,
    failureThreshold: 150,
  },
  readinessProbe: { httpGet: { path: '/readyz', port: ADMIN_PORT.name }, periodSeconds: 10 },
  livenessProbe: { httpGet: { path: '/livez', port: ADMIN_PORT.name }, periodSeconds: 10 },
};

interface SnippetFacts {
  readonly policy: RowOf<'enrollmentPolicy'>;
  readonly audience: string;
  readonly caConfigMap: string | undefined;
}

const COMMENTS: { readonly [path: string]: string } = {
  serviceAccountName: " The policy's verified subject.",
  securityContext:
    ' The key file is for its owner alone: the containers that sign must run as the same user as this one.',
  volumeMounts: ` Mount ${KEY_VOLUME} in the containers that sign, too: whole, never by subPath.`,
  restartPolicy:
    ' A native sidecar: it runs for as long as the pod, and the application starts once it is ready.',
  startupProbe: ' As long as approval may take, where the policy wants one.',
  expirationSeconds: ' A key ends with its token at the latest.',
  medium: ' The private key never reaches a disk.',
  configMap: " Whom to trust Control by; in each workload's own namespace.",
};

/** Parts of a pod's `spec`. @param container its own members, which precede the common ones */
function podParts({ policy, audience, caConfigMap }: SnippetFacts, container: object): string {
  const account = serviceAccountOf(policy.verifiedSubject);
  const ca = caConfigMap === undefined ? [] : [{ name: CA_VOLUME, configMap: { name: caConfigMap } }];
  const parts = {
    ...(account === undefined ? {} : { serviceAccountName: account.name }),
    initContainers: [
      {
        ...container,
        securityContext: {
          runAsNonRoot: true,
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
          // Satisfies the `restricted` Pod Security Standard.
          seccompProfile: { type: 'RuntimeDefault' },
        },
        volumeMounts: [
          { name: TOKEN_VOLUME, mountPath: TOKEN_DIRECTORY, readOnly: true },
          { name: KEY_VOLUME, mountPath: KEY_DIRECTORY },
          ...ca.map(({ name }) => ({ name, mountPath: CA_DIRECTORY, readOnly: true })),
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
      ...ca,
    ],
  };
  // kubectl also reads YAML 1.1, in which a bare `on` is true and `1_000` is a number.
  const document = new Document(parts, { compat: 'yaml-1.1' });
  explain(document);
  return document.toString({ lineWidth: 0 });
}

/** At most the key's lifetime, or Kubernetes' minimum: a token is a bearer credential. */
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
