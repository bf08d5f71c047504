/**
 * Import directions, as docs/architecture.md draws them: down the floors. `scripts/check-architecture.mjs` runs this, with canaries,
 * and `scripts/house.mjs` beside it, which finds circles of folders.
 */

/** The other rooms are being moved into. */
const FLOORS = [['protocol']];

const roomRules = FLOORS.flat().map((room) => {
  const below = FLOORS.slice(
    0,
    FLOORS.findIndex((floor) => floor.includes(room)),
  ).flat();
  const allowed = [room, ...below];
  return {
    name: `room-${room}`,
    comment: `src/${room} imports only: ${allowed.join(', ')}`,
    severity: 'error',
    from: { path: `^src/${room}/` },
    to: { path: '^src/', pathNot: `^src/(${allowed.join('|')})/` },
  };
});

module.exports = {
  forbidden: [
    ...roomRules,
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
