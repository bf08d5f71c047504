/**
 * Prints what users depend on, one fact a line, sorted: commands with their settings, exit codes, error codes, reasons,
 * metrics, API, schemas, chart values and vectors. A change of the output is a change that users notice; other changes leave it
 * byte-identical. Needs `npm run build` first.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Writable } from 'node:stream';
import ts from 'typescript';
import { parse } from 'yaml';

/** Current places of the sources; a commit that moves or renames one edits its line. None of this is printed. */
const { buildProgram } = await import('../dist/cli/program.js');
const { Output } = await import('../dist/process/program/output.js');
const { memberOf, variableOf } = await import('../dist/process/settings/setting-sources.js');
const { EXIT_CODES } = await import('../dist/process/program/errors.js');
const { REASONS, STATUS_OF_REASON } = await import('../dist/protocol/reasons.js');
const { PROBLEMS } = await import('../dist/control/domain/api-problem.js');
const { AUDITED } = await import('../dist/control/domain/audit-kinds.js');
const METRICS = {
  verifier: await verifierMetrics(),
  control: (await import('../dist/control/program/control-metrics.js')).createControlMetrics({
    propagation: async () => [],
    renewals: async () => [],
  }).registry,
  agent: (await import('../dist/caller/agent/agent-metrics.js')).createAgentMetrics(() => 0).registry,
};
/** The interface whose members are the details of each reason. */
const DETAILS_INTERFACE = 'DetailOf';
/** Names of parameters, members, variables and types that contain error codes. */
const CODE_NAME = /^(codes?|[A-Z_]+_CODES?|[A-Za-z]+Codes?)$/;

async function verifierMetrics() {
  const metrics = await import('../dist/verifier/verifier-metrics.js');
  const { registry } = metrics.createVerifierMetrics(() => undefined);
  metrics.createRefreshMetrics(registry, () => undefined);
  (await import('../dist/process/admin/readiness-metrics.js')).createReadinessMetrics(registry, () => []);
  (await import('../dist/verifier/audit/audit-metrics.js')).createAuditMetrics(registry);
  metrics.createReplayMetrics(registry, [], () => undefined);
  metrics.createWorkerMetrics(registry, () => 0);
  return registry;
}

const lines = new Set();
const print = (...words) => lines.add(words.join(' '));

/** A command, its arguments and settings; then the commands below it. */
function printCommand(command, above) {
  const name = [...above, command.name()].join(' ');
  print('command', name);
  for (const [index, argument] of command.registeredArguments.entries()) {
    print('argument', name, index + 1, argument.required ? `<${argument.name()}>` : `[${argument.name()}]`);
  }
  for (const option of command.options) print('flag', name, option.flags, option.hidden ? 'hidden' : '');
  for (const setting of command.settings ?? []) printSetting(name, setting);
  for (const below of command.commands) printCommand(below, [...above, command.name()]);
}

function printSetting(command, setting) {
  const { absent, aliases, fileScalar, flag, repeatable, separator } = setting;
  for (const named of [flag, ...aliases]) {
    const facts = {
      variable: variableOf(named),
      member: memberOf(named),
      type: fileScalar,
      ...(named === flag ? {} : { sameAs: flag }),
      ...(repeatable ? { separator } : {}),
      ...(absent.kind === 'required' ? { required: true } : { default: absent.value ?? null }),
    };
    print('setting', command, `--${named}`, JSON.stringify(facts));
  }
}

async function printCommands() {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const context = { env: {}, output: new Output(nowhere, nowhere, {}), version: '0.0.0' };
  printCommand(await buildProgram(context), []);
}

async function printMetrics() {
  for (const [program, registry] of Object.entries(METRICS)) {
    const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, type]));
    for (const { buckets, labelNames, name } of registry.getMetricsAsArray()) {
      const facts = { type: types.get(name), labels: [...(labelNames ?? [])].sort(), buckets };
      print('metric', program, name, JSON.stringify(facts));
    }
  }
}

function printCodes() {
  for (const [kind, code] of Object.entries(EXIT_CODES)) print('exit', code, kind);
  for (const [code, [status]] of Object.entries(PROBLEMS)) print('problem', code, status);
  for (const [resource, verbs] of Object.entries(AUDITED)) {
    for (const verb of verbs) print('audit', `proofgate.control.${resource}.${verb}`);
  }
  for (const reason of REASONS) print('reason', reason, STATUS_OF_REASON[reason]);
  const sources = filesIn('src', '.ts').map((file) =>
    ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true),
  );
  for (const source of sources) visit(source, printDetails);
  const takers = new Map();
  for (const source of sources) visit(source, (node) => noteCodeParameters(node, takers));
  for (const source of sources) visit(source, (node) => printErrorCodes(node, takers));
}

function visit(node, act) {
  act(node);
  ts.forEachChild(node, (child) => visit(child, act));
}

function printDetails(node) {
  if (!ts.isInterfaceDeclaration(node) || node.name.text !== DETAILS_INTERFACE) return;
  for (const { name, type } of node.members) {
    for (const detail of alternatives(type)) print('detail', name.getText(), detail);
  }
}

/** The values of a union; names of types are resolved within their file. */
function alternatives(type) {
  if (ts.isUnionTypeNode(type)) return type.types.flatMap(alternatives);
  const alias = type
    .getSourceFile()
    .statements.find((node) => ts.isTypeAliasDeclaration(node) && node.name.text === type.getText());
  return alias === undefined ? [type.getText()] : alternatives(alias.type);
}

/** Functions and classes with a parameter for a code: its places, by the name that calls use. */
function noteCodeParameters(node, takers) {
  if (!ts.isFunctionLike(node)) return;
  const owner = ts.isConstructorDeclaration(node) || ts.isArrowFunction(node) ? node.parent : node;
  const name = owner.name?.getText();
  if (name === undefined) return;
  for (const [index, parameter] of node.parameters.entries()) {
    if (CODE_NAME.test(parameter.name.getText())) {
      takers.set(name, (takers.get(name) ?? new Set()).add(index));
    }
  }
}

function printErrorCodes(node, takers) {
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
    const callee = ts.isPropertyAccessExpression(node.expression) ? node.expression.name : node.expression;
    for (const index of takers.get(callee.getText()) ?? []) printLiterals(node.arguments?.[index]);
  }
  const declares =
    ts.isVariableDeclaration(node) ||
    ts.isPropertyAssignment(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isPropertySignature(node);
  if (declares && CODE_NAME.test(node.name.getText())) printLiterals(node.initializer ?? node.type);
}

/** The codes that an expression or a type can have, without those that it compares or passes to calls. */
function printLiterals(node) {
  if (node === undefined || ts.isCallExpression(node)) return;
  if (ts.isConditionalExpression(node)) {
    printLiterals(node.whenTrue);
    printLiterals(node.whenFalse);
  } else if (ts.isStringLiteral(node)) {
    if (/^[a-z][a-z0-9_]*$/.test(node.text)) print('code', node.text);
  } else ts.forEachChild(node, printLiterals);
}

/** One line for each value, with its path in the document, without texts for people. */
function printDocument(kind, file, value, at = '') {
  if (typeof value !== 'object' || value === null) {
    print(kind, file, at === '' ? '/' : at, JSON.stringify(value));
    return;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) print(kind, file, at, Array.isArray(value) ? '[]' : '{}');
  for (const [name, member] of entries) {
    const isText = ['description', 'summary', 'title'].includes(name) && typeof member === 'string';
    if (kind !== 'default' && isText) continue;
    printDocument(kind, file, member, `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  }
}

/** Below a folder, at any depth. */
function filesIn(folder, ending) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(ending));
  return files.map((file) => path.join(folder, file));
}

function printDocuments() {
  printDocument('api', 'openapi', JSON.parse(readFileSync('docs/reference/openapi.json', 'utf8')));
  for (const file of [...filesIn('docs/reference/schema', '.json'), 'helm/proofgate/values.schema.json']) {
    printDocument('schema', path.basename(file), JSON.parse(readFileSync(file, 'utf8')));
  }
  printDocument('default', 'chart', parse(readFileSync('helm/proofgate/values.yaml', 'utf8')));
  for (const file of filesIn('test/vectors', '.json')) {
    print('vectors', path.basename(file), createHash('sha256').update(readFileSync(file)).digest('hex'));
  }
}

await printCommands();
await printMetrics();
printCodes();
printDocuments();
for (const line of [...lines].sort()) console.log(line.trimEnd());
