/** Checks that flags, variables, metrics, chart values, files and API operations named in sentences and tables exist. */
import { describe, expect, it } from '@jest/globals';
import { blocksOf, DOCUMENTS } from '../../support/docs/blocks.ts';
import { filesOfCheckout, isInCheckout, readText } from '../../support/docs/markdown.ts';
import { FLAGS, VARIABLES } from './proofgate.ts';
import { allSpans, placeOf, spansOf } from './spans.ts';
import { FILES, isValue, valuePathsIn } from './value-paths.ts';

const spans = allSpans();

/** Locations of unknown names in the texts. */
function unknown(namesIn: (text: string) => readonly string[], isKnown: (name: string) => boolean) {
  const named = spans.flatMap((span) => namesIn(span.text).map((name) => ({ name, at: placeOf(span) })));
  return {
    count: named.length,
    places: named.filter(({ name }) => !isKnown(name)).map(({ name, at }) => `${at}: ${name}`),
  };
}

describe('flags', () => {
  /** Flags of kube-apiserver, helm, Envoy and Node.js. */
  const OTHERS = ['--anonymous-auth', '--kube-version', '--concurrency', '--expose-gc', '--trace-gc-nvp'];
  const named = (text: string) => [...text.matchAll(/^(--[a-z][a-z-]*)(?=[ =]|$)/g)].map(([flag]) => flag);
  const isFlag = (flag: string) =>
    FLAGS.has(flag) || FLAGS.has(flag.replace('--no-', '--')) || OTHERS.includes(flag);

  it('that stand alone are the program’s', () => {
    const { count, places } = unknown(named, isFlag);
    expect(count).toBeGreaterThan(300);
    expect(places).toEqual([]);
  });

  it('would not be with a letter less', () => {
    expect(named('--stat-dir DIRECTORY').filter(isFlag)).toEqual([]);
  });
});

describe('variables', () => {
  const sources = ['src', 'demo', 'scripts', 'test', 'bench', 'stryker.config.mjs', 'Makefile']
    .flatMap((at) =>
      /[.M]/.test(at) ? [at] : ['.ts', '.mjs', '.sh'].flatMap((end) => filesOfCheckout(at, end)),
    )
    .filter((file) => !file.startsWith('test/docs/inline/'))
    .map(readText)
    .join('\n');
  const read = new Set(sources.match(/\bPROOFGATE_[A-Z_]*[A-Z]\b/g));
  const pasted = DOCUMENTS.flatMap(blocksOf).map(({ text }) => text);
  const set = new Set(pasted.flatMap((text) => text.match(/\bPROOFGATE_[A-Z_]*[A-Z](?==)/g) ?? []));
  const isVariable = (name: string) => VARIABLES.has(name) || read.has(name) || set.has(name);
  const named = (text: string) => text.match(/\bPROOFGATE_[A-Z_]*[A-Z]\b/g) ?? [];

  it('are those of a flag, of a program of the checkout, or set in a block', () => {
    const { count, places } = unknown(named, isVariable);
    expect(count).toBeGreaterThan(10);
    expect(places).toEqual([]);
  });

  it('would not be with another name', () => {
    expect(named('PROOFGATE_REPLAYS=memory').filter(isVariable)).toEqual([]);
  });
});

describe('metrics', () => {
  const sources = filesOfCheckout('src', '.ts').map(readText).join('\n');
  const declared = new Set([...sources.matchAll(/'(proofgate_[a-z_]+)'/g)].map(([, name = '']) => name));
  const isMetric = (name: string) =>
    declared.has(name) || declared.has(name.replace(/_(?:bucket|sum|count)$/, ''));
  const named = (text: string) => text.match(/\bproofgate_[a-z_]*[a-z]\b/g) ?? [];

  it('are declared', () => {
    const { count, places } = unknown(named, isMetric);
    expect(count).toBeGreaterThan(50);
    expect(places).toEqual([]);
  });

  it('would not be with another name', () => {
    expect(named('proofgate_decision_total').filter(isMetric)).toEqual([]);
  });
});

describe('files', () => {
  const ends = ['.ts', '.mjs', '.sh', '.yaml', '.json', '.md', '.proto', '.tpl', '.go', '.py', '.txt'];
  const files = ends.flatMap((end) => filesOfCheckout('.', end));
  const named = (text: string) =>
    text.match(
      /^(?![./]|x\.)[\w.-]+(?:(?:\/[\w.-]+)+\.(?:ts|mjs|sh|yaml|md|proto|tpl|go|py)|\.(?:ts|mjs|md))$/g,
    ) ?? [];
  const isFile = (path: string) => isInCheckout(path) || files.some((file) => file.endsWith(`/${path}`));

  it('are there, below the checkout or below a folder that the sentence is about', () => {
    const { count, places } = unknown(named, isFile);
    expect(count).toBeGreaterThan(100);
    expect(places).toEqual([]);
  });

  it('would not be with another name', () => {
    expect(['istio/gateways.yaml', 'reasons.test.mjs'].flatMap(named).filter(isFile)).toEqual([]);
  });
});

describe('operations', () => {
  const paths = ['docs/reference/openapi.json', 'docs/reference/broker-openapi.json'].flatMap((file) => {
    const document: { readonly paths: Readonly<Record<string, object>> } = JSON.parse(readText(file));
    return Object.entries(document.paths);
  });
  const plain = (path: string) => path.replace(/\?.*$/, '').replace(/\{[^}]*\}/g, '{}');
  const known = new Set(
    paths.flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${plain(path)}`),
    ),
  );
  const named = (text: string) =>
    (text.match(/^(?:GET|POST|PUT|PATCH|DELETE) \/(?:v1|auth)\/\S+$/g) ?? []).map(plain);

  it('are those of the API', () => {
    const { count, places } = unknown(named, (operation) => known.has(operation));
    expect(count).toBeGreaterThan(15);
    expect(places).toEqual([]);
  });

  it('would not be with another method', () => {
    expect(named('PUT /v1/enrollments').filter((operation) => known.has(operation))).toEqual([]);
  });
});

describe('values of the chart', () => {
  it('are in its schema', () => {
    const { count, places } = unknown(valuePathsIn, isValue);
    expect(count).toBeGreaterThan(200);
    expect(places).toEqual([]);
  });

  it("are in its schema where the chart's own README shortens them", () => {
    const named = spansOf('helm/proofgate/README.md')
      .map(({ text }) => text.replace(/: .*$/, ''))
      .filter((text) => /^[a-z][A-Za-z]*(?:\.[a-z][A-Za-z]*)+$/.test(text) && !FILES.test(text));
    expect(named.length).toBeGreaterThan(200);
    expect(named.filter((path) => !isValue(path))).toEqual([]);
  });

  it('would not be with another name', () => {
    const wrong = ['verifier.replica', 'control.tls.modes', 'redis.urlSecret.names', 'image.repositry'];
    expect(wrong.flatMap(valuePathsIn)).toEqual(wrong);
    expect(wrong.filter(isValue)).toEqual([]);
    expect(isValue('verifier.nodeSelector.anything')).toBe(true);
  });

  it('are in the schema where a template refuses some', () => {
    const text = filesOfCheckout('helm/proofgate/templates', '.tpl').map(readText).join('\n');
    const sentences = [...text.matchAll(/"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"/g)].map(
      ([sentence]) => sentence,
    );
    const named = sentences.flatMap(valuePathsIn);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((path) => !isValue(path))).toEqual([]);
  });
});
