/** Tests `bundle routes` with ten public OpenAPI documents: every operation has a route or a reason, and lint finds nothing. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { lintBundleYaml } from '../../../../src/bundle/authoring/lint-content.ts';
import { runInProcess } from '../../../support/cli/in-process.ts';
import { NOW_SECONDS } from '../../../support/fixtures/bundle-content.ts';

const inRepository = (path: string) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
const BUNDLE = inRepository('bundles/minimal.yaml');

/** `basePaths`: of the servers. `without`: operations that have no route. */
const DOCUMENTS = [
  { file: 'petstore-3.0.yaml', operations: 20, basePaths: ['/v2'], without: [] },
  { file: 'petstore-3.1.json', operations: 20, basePaths: ['/v2'], without: [] },
  { file: 'blockfrost.yaml', operations: 129, basePaths: ['/api/v0', ''], without: [] },
  { file: 'datadog.json', operations: 235, basePaths: [''], without: [] },
  { file: 'figma.yaml', operations: 54, basePaths: [''], without: [] },
  {
    file: 'github.json',
    operations: 1223,
    basePaths: [''],
    without: ['template GET /repos/{owner}/{repo}/compare/{base}...{head}'],
  },
  { file: 'kubernetes.json', operations: 248, basePaths: [''], without: [] },
  { file: 'okta.json', operations: 585, basePaths: [''], without: [] },
  { file: 'prometheus.yaml', operations: 53, basePaths: ['/api/v1'], without: [] },
  { file: 'sendgrid.json', operations: 334, basePaths: ['/v3'], without: [] },
];

describe.each(DOCUMENTS)('$file', ({ file, operations, basePaths, without }) => {
  const path = inRepository(`test/support/openapi/${file}`);
  const routesOf = async (...flags: readonly string[]) => {
    const run = await runInProcess(['bundle', 'routes', '--openapi', path, '--like', BUNDLE, ...flags]);
    expect(run).toMatchObject({ exitCode: 0, stderr: '' });
    return run.stdout;
  };

  it('gives every operation a route or a reason', async () => {
    const shown = JSON.parse(await routesOf('--output', 'json'));
    const served = new Set([
      ...shown.routes.map((route: Route) => shapeOf(route.method, route.path_template)),
      ...shown.without_route.map((entry: WithoutRoute) => shapeOf(entry.method, entry.path)),
    ]);
    const missing = operationsIn(path).filter(
      ([method, template]) => !basePaths.some((base) => served.has(shapeOf(method, base + template))),
    );
    expect(missing).toEqual([]);
    expect(shown.operations).toBe(operations);
    expect(
      shown.without_route.map((entry: WithoutRoute) => `${entry.reason} ${entry.method} ${entry.path}`),
    ).toEqual(without);
  });

  it.each(['path', 'tag'])('lints clean in the bundle, with resources from the %s', async (source) => {
    const site = parse(readFileSync(BUNDLE, 'utf8'));
    const proposed = parse(await routesOf('--resource-from', source));
    site.routes.push(...proposed.routes);
    site.route_sources.push(...proposed.route_sources);
    const options = { yamlText: JSON.stringify(site), fileName: 'site.yaml', nowSeconds: NOW_SECONDS };
    const findings = await lintBundleYaml(options);
    expect(findings.filter(({ severity }) => severity === 'warning')).toEqual([]);
  });
});

interface Route {
  readonly method: string;
  readonly path_template: string;
}

interface WithoutRoute {
  readonly method: string;
  readonly path: string;
  readonly reason: string;
}

/** Names of placeholders differ. */
function shapeOf(method: string, path: string): string {
  return `${method} ${path.replace(/\{[^{}]*\}/g, '{}')}`;
}

const METHODS = /^(?:get|put|post|delete|options|head|patch|trace)$/;

function operationsIn(path: string): readonly (readonly [method: string, template: string])[] {
  const { paths } = parse(readFileSync(path, 'utf8'));
  return Object.entries<object>(paths).flatMap(([template, item]) =>
    Object.keys(item)
      .filter((name) => METHODS.test(name))
      .map((name) => [name.toUpperCase(), template] as const),
  );
}
