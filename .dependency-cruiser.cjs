/**
 * Import directions, as docs/architecture.md draws them. `scripts/check-architecture.mjs` runs this, with a canary.
 */
const layers = {
  protocol: [],
  telemetry: ['protocol'],
  'runtime-internals': [],
  'request-body': [],
  bundle: ['protocol', 'telemetry'],
  verifier: ['protocol', 'bundle', 'telemetry'],
  'envoy-request': ['protocol', 'verifier/decision'],
  explain: ['protocol', 'bundle', 'telemetry', 'envoy-request', 'verifier/decision'],
  'http-proxy': ['protocol', 'enforcement/connections', 'request-body', 'runtime-internals'],
  enforcement: [
    'protocol',
    'bundle',
    'telemetry',
    'verifier',
    'runtime-internals',
    'request-body',
    'http-proxy',
    'envoy-request',
  ],
  'outbound-fetch': ['protocol', 'telemetry'],
  'api-contract': ['protocol', 'bundle/format'],
  control: [
    'protocol',
    'bundle',
    'telemetry',
    'api-contract',
    'outbound-fetch',
    'http-service',
    'explain',
    'verifier/decision',
  ],
  grpc: ['protocol', 'telemetry'],
  spiffe: ['protocol', 'telemetry', 'grpc', 'outbound-fetch'],
  'http-service': ['protocol', 'telemetry', 'api-contract', 'request-body', 'runtime-internals'],
  broker: ['protocol', 'telemetry', 'api-contract', 'spiffe', 'http-service'],
  client: ['protocol', 'spiffe'],
  program: ['protocol', 'client'],
  signer: [
    'protocol',
    'telemetry',
    'client',
    'request-body',
    'http-proxy',
    'envoy-request',
    'enforcement/ext-authz-grpc',
  ],
  workload: ['protocol', 'telemetry', 'client', 'program', 'spiffe'],
  sdk: ['protocol', 'client', 'program', 'workload'],
  'gateway-lint': ['protocol'],
  conformance: ['protocol', 'client'],
  console: [],
};

/** What every HTTP enforcement point may use of its neighbours. */
const HTTP_POINT = [
  'enforcement/http',
  'enforcement/connections',
  'enforcement/denial-problem',
  'enforcement/upstream-headers',
];

/** Within one of them: folders that import only these neighbours, folders or files. */
const parts = {
  'bundle/format': [],
  'bundle/compile': ['bundle/format'],
  'bundle/authoring': ['bundle/format', 'bundle/compile'],
  'verifier/decision': [],
  'verifier/loading': [],
  'verifier/redis': ['verifier/loading', 'verifier/time-limit'],
  'enforcement/connections': [],
  'enforcement/http': HTTP_POINT,
  'enforcement/ext-authz-http': HTTP_POINT,
  'enforcement/reverse-proxy': HTTP_POINT,
  'enforcement/middleware': HTTP_POINT,
  'enforcement/ext-authz-grpc': HTTP_POINT.slice(1),
};

/** Clients of the API take the shapes of what is said, and nothing that runs. */
const CONTRACT = '^src/api-contract/';

/** Schemas with their types, as TypeBox builds them. */
const BUILT_SCHEMAS = '^src/bundle/format/(schema|schema-entries|distribution-contract)\\.ts$';

const layerRules = Object.entries(layers).map(([layer, allowed]) => ({
  name: `layer-${layer}`,
  comment: `src/${layer} imports only: ${[layer, ...allowed].join(', ')}`,
  severity: 'error',
  from: { path: `^src/${layer}/` },
  to: {
    path: '^src/',
    pathNot: [`^src/(${[layer, ...allowed].join('|')})/`, ...(layer === 'client' ? [CONTRACT] : [])],
  },
}));

const partRules = Object.entries(parts).map(([part, allowed]) => ({
  name: `part-${part.replaceAll('/', '-')}`,
  comment: `of its neighbours src/${part} imports only: ${allowed.join(', ') || 'none'}`,
  severity: 'error',
  from: { path: `^src/${part}/` },
  to: { path: `^src/${part.split('/')[0]}/`, pathNot: `^src/(${[part, ...allowed].join('|')})(/|\\.ts$)` },
}));

/** Only one folder knows a library; everything else goes through its port. */
const onlyKnownBy = (library, folder) => ({
  name: `only-${folder.replaceAll('/', '-')}-knows-${library.replaceAll(/[@/]/g, '')}`,
  severity: 'error',
  from: { path: '^src/', pathNot: `^src/${folder}/` },
  to: { path: `node_modules/${library}` },
});

module.exports = {
  forbidden: [
    ...layerRules,
    ...partRules,
    {
      name: 'only-cli-imports-main',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(cli|main)/' },
      to: { path: '^src/main/' },
    },
    {
      name: 'assembly-is-on-top-of-the-verifier',
      severity: 'error',
      from: { path: '^src/verifier/(?!assembly/)' },
      to: { path: '^src/verifier/assembly/' },
    },
    {
      name: 'nobody-imports-the-cli',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/' },
      to: { path: '^src/cli/' },
    },
    onlyKnownBy('ioredis', 'verifier/redis'),
    onlyKnownBy('@grpc/', '(enforcement/ext-authz-grpc|spiffe|grpc)'),
    onlyKnownBy('protobufjs', 'enforcement/ext-authz-grpc'),
    onlyKnownBy('grpc-health-check', 'enforcement/ext-authz-grpc'),
    {
      name: 'client-takes-only-types-of-the-contract',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { path: CONTRACT, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'who-checks-a-bundle-loads-no-builder-of-schemas',
      comment: 'docs/schema/ has the schemas: docs/performance.md, "What idle programs take"',
      severity: 'error',
      from: { path: '^src/(?!control/|client/|api-contract/|http-service/|broker/)', pathNot: BUILT_SCHEMAS },
      to: {
        path: [BUILT_SCHEMAS, 'node_modules/typebox/(?!build/(schema|error)/)'],
        dependencyTypesNot: ['type-only'],
      },
    },
    onlyKnownBy('(react|react-dom|@mantine|@tanstack|openapi-fetch)/', 'console'),
    onlyKnownBy('commander', 'cli'),
    onlyKnownBy('sodium-native', 'protocol'),
    onlyKnownBy('kysely', 'control/store'),
    onlyKnownBy('libsql', 'control/store'),
    onlyKnownBy('pg/', 'control/store'),
    onlyKnownBy('fastify', '(control/api|http-service|broker)'),
    onlyKnownBy('@fastify/', '(control/api|http-service|broker)'),
    onlyKnownBy('openid-client', 'control/operators'),
    onlyKnownBy('jose', '(control/issuers|spiffe)'),
    onlyKnownBy('@peculiar/', 'spiffe'),
    onlyKnownBy('ipaddr\\.js', 'outbound-fetch'),
    onlyKnownBy(
      'undici',
      '(verifier/loading/refresh|client|outbound-fetch|control/operators|verifier/audit|http-proxy)',
    ),
    {
      name: 'the-signing-engine-loads-no-library',
      comment: 'the Node SDK is built from it and has no dependency',
      severity: 'error',
      from: { path: '^src/client/request-signer\\.ts$' },
      to: { path: 'node_modules/', reachable: true },
    },
    onlyKnownBy('prom-client', 'telemetry'),
    onlyKnownBy('@opentelemetry/', 'telemetry'),
    {
      name: 'no-cycles',
      severity: 'error',
      from: { path: '^src/' },
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        path: '^src/',
        pathNot: '(^src/cli/main\\.ts|^src/console/(main\\.tsx|vite\\.config\\.ts)|\\.d\\.ts)$',
      },
      to: {},
    },
    {
      name: 'nothing-unresolvable',
      severity: 'error',
      from: { path: '^src/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'no-dev-dependencies-at-run-time',
      comment: 'the console is bundled with its libraries when it is built',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/console/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'src-knows-no-tests',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|demo)/' },
    },
    {
      name: 'programs-run-without-jest',
      comment: 'its globals cannot be imported outside of a test',
      severity: 'error',
      from: { path: '^(bench|demo)/' },
      to: { path: 'node_modules/@jest/', reachable: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
