/**
 * Loads TypeScript for fuzzing: strips types, and instruments the fuzzed modules to count edges and to report comparisons. The
 * edges are those of jazzer.js. Its native fuzzer needs a newer C library than our supported systems have, so the loop is our
 * own (`fuzzer.ts`).
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load as loadTypescript } from '../../support/harness/typescript-hooks.mjs';

const instrumentor = createRequire(import.meta.url).resolve('@jazzer.js/instrumentor');
const requireOfInstrumentor = createRequire(instrumentor);
const { transformSync, types: t } = requireOfInstrumentor('@babel/core');
const { makeCoverageVisitor } = requireOfInstrumentor(
  join(dirname(instrumentor), 'plugins', 'coverageVisitor.js'),
);

const INSTRUMENTED = [new URL('../../../src/', import.meta.url), new URL('../canary.ts', import.meta.url)];
const EDGES = '__edges';

export async function load(url, context, nextLoad) {
  const loaded = await loadTypescript(url, context, nextLoad);
  if (!url.endsWith('.ts') || !INSTRUMENTED.some(({ href }) => url.startsWith(href))) return loaded;
  return { ...loaded, source: instrument(loaded.source, fileURLToPath(url)) };
}

function instrument(source, filename) {
  let edges = 0;
  const countEdge = () => {
    const counter = t.memberExpression(t.identifier(EDGES), t.numericLiteral(edges++), true);
    return t.updateExpression('++', counter);
  };
  const plugins = [{ visitor: makeCoverageVisitor(countEdge) }, { visitor: comparisonVisitor() }];
  const { code } = transformSync(source, { filename, plugins, sourceMaps: 'inline', configFile: false });
  // On the first line, so that the source map holds.
  return `const ${EDGES} = globalThis.fuzzing.edges(${edges});${code}`;
}

/** `a === b` becomes `fuzzing.isSame(a, b)`, which remembers strings: what an input is compared with is worth trying. */
function comparisonVisitor() {
  return {
    BinaryExpression(path) {
      const { left, operator, right } = path.node;
      if ((operator !== '===' && operator !== '!==') || !mayBeText(left) || !mayBeText(right)) return;
      const isSame = t.memberExpression(t.identifier('fuzzing'), t.identifier('isSame'));
      const call = t.callExpression(isSame, [left, right]);
      path.replaceWith(operator === '===' ? call : t.unaryExpression('!', call));
    },
  };
}

function mayBeText(node) {
  if (t.isStringLiteral(node)) return true;
  const isOther = t.isLiteral(node) || t.isIdentifier(node, { name: 'undefined' });
  return !isOther && !t.isUnaryExpression(node) && !t.isPrivateName(node);
}
