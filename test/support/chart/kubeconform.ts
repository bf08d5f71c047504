/** Validates manifests against the schemas of a Kubernetes version and of custom resources. */
import { spawnSync } from 'node:child_process';
import { CACHE, NEWEST_KUBERNETES } from './chart.ts';

export const KUBERNETES = [
  ...['1.29.0', '1.30.0', '1.31.0', '1.32.0'],
  ...['1.33.0', '1.34.0', '1.35.0', NEWEST_KUBERNETES],
];

/** @param input text of manifests, instead of files @returns validation errors; empty without any */
export function misfits(kubernetes: string, files: readonly string[], input?: string): string {
  const schemas = `${CACHE}/schemas`;
  const { stderr, stdout } = spawnSync(
    `${CACHE}/bin/kubeconform`,
    [
      ...['-strict', '-n', '1'],
      ...['-schema-location', `${schemas}/kubernetes/${kubernetes}/{{.ResourceKind}}{{.KindSuffix}}.json`],
      ...[
        '-schema-location',
        `${schemas}/custom-resources/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json`,
      ],
      ...files,
    ],
    { encoding: 'utf8', ...(input === undefined ? {} : { input }) },
  );
  return stdout + stderr;
}

/** Validates text against the newest version. */
export function misfitsIn(text: string): string {
  return misfits(NEWEST_KUBERNETES, ['-'], text);
}
