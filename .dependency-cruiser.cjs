/**
 * Import directions, as docs/design/architecture.md draws them: down the floors. `scripts/check-architecture.mjs` runs this, with canaries,
 * and `scripts/house.mjs` beside it, which finds circles of folders.
 */

/** Rooms of the same floor do not import each other. */
const FLOORS = [
  ['protocol'],
  ['process'],
  ['bundle', 'spiffe'],
  ['verifier'],
  ['enforcement', 'broker', 'control', 'caller'],
  ['tools'],
  ['cli'],
];

/** Rooms that others do not import, or that know less than their floor allows. */
const NARROWER = {
  console: [],
  bundle: ['protocol', 'process/(files|program)'],
  verifier: ['protocol', 'process', 'bundle'],
  broker: ['protocol', 'process', 'spiffe', 'verifier/(audit|assembly)'],
  control: ['protocol', 'process', 'bundle', 'verifier/(decision|explain)'],
  caller: ['protocol', 'process', 'spiffe', 'verifier/(decision|envoy-request)'],
};

const roomRules = [...FLOORS.flat(), 'console'].map((room) => {
  const below = FLOORS.slice(
    0,
    FLOORS.findIndex((floor) => floor.includes(room)),
  ).flat();
  const allowed = [room, ...(NARROWER[room] ?? below)];
  return {
    name: `room-${room}`,
    comment: `src/${room} imports only: ${allowed.join(', ')}`,
    severity: 'error',
    from: { path: `^src/${room}/` },
    to: { path: '^src/', pathNot: `^src/(${allowed.join('|')})/` },
  };
});

/** Folders that import only these neighbours within their room. */
const parts = {
  'bundle/format': [],
  'bundle/compile': ['bundle/format'],
  'bundle/authoring': ['bundle/format', 'bundle/compile'],
  'verifier/decision': [],
  'verifier/loading': [],
  'verifier/redis': ['verifier/loading'],
  'enforcement/answers': [],
  'enforcement/http': ['enforcement/answers'],
  'enforcement/ext-authz-http': ['enforcement/answers', 'enforcement/http'],
  'enforcement/reverse-proxy': ['enforcement/answers', 'enforcement/http'],
  'enforcement/middleware': ['enforcement/answers', 'enforcement/http'],
  'enforcement/ext-authz-grpc': ['enforcement/answers'],
};

/** Schemas with their types, as TypeBox builds them. */
const BUILT_SCHEMAS = '^src/bundle/format/(schema|schema-entries|distribution-contract)\\.ts$';

const partRules = Object.entries(parts).map(([part, allowed]) => ({
  name: `part-${part.replaceAll('/', '-')}`,
  comment: `of its neighbours src/${part} imports only: ${allowed.join(', ') || 'none'}`,
  severity: 'error',
  from: { path: `^src/${part}/` },
  to: { path: `^src/${part.split('/')[0]}/`, pathNot: `^src/(${[part, ...allowed].join('|')})/` },
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
    ...roomRules,
    ...partRules,
    {
      name: 'assembly-is-on-top-of-the-verifier',
      severity: 'error',
      from: { path: '^src/verifier/(?!assembly/)' },
      to: { path: '^src/verifier/assembly/' },
    },
    onlyKnownBy('ioredis', 'verifier/redis'),
    onlyKnownBy('@grpc/', '(process/(grpc|ext-authz)|enforcement/ext-authz-grpc|spiffe)'),
    onlyKnownBy('protobufjs', 'process/ext-authz'),
    onlyKnownBy('grpc-health-check', 'process/ext-authz'),
    {
      name: 'who-checks-a-bundle-loads-no-builder-of-schemas',
      comment:
        'src/bundle/format/schemas/ has the schemas: docs/operate/performance.md, "What idle programs take"',
      severity: 'error',
      from: { path: '^src/(?!control/|broker/|process/http-service/)', pathNot: BUILT_SCHEMAS },
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
    onlyKnownBy('fastify', '(process/http-service|control/api|broker/api)'),
    onlyKnownBy('@fastify/', '(process/http-service|control/api|broker/api)'),
    onlyKnownBy('openid-client', 'control/operators'),
    onlyKnownBy('jose', '(control/issuers|spiffe)'),
    onlyKnownBy('@peculiar/', 'spiffe'),
    onlyKnownBy('ipaddr\\.js', 'process/outbound-fetch'),
    onlyKnownBy(
      'undici',
      '(process/(http-proxy|outbound-fetch)|verifier/(audit|loading/refresh)|control/operators|caller|cli/ctl/client)',
    ),
    {
      name: 'the-signing-engine-loads-no-library',
      comment: 'the Node SDK is built from it and has no dependency',
      severity: 'error',
      from: { path: '^src/caller/sign/request-signer\\.ts$' },
      to: { path: 'node_modules/', reachable: true },
    },
    {
      name: 'only-metrics-know-prom-client',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(process/telemetry/|.*-metrics\\.ts$)' },
      to: { path: 'node_modules/prom-client' },
    },
    onlyKnownBy('@opentelemetry/', 'process/telemetry'),
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
