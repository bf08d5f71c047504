/** The pairs of files below `files/`: each rule has a folder with what it finds (`bad*.yaml`) and what it does not (`good*.yaml`). */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { lintGateway } from '../../src/gateway-lint/lint.ts';

const FOLDER = fileURLToPath(new URL('./files/', import.meta.url));

export interface RuleFile {
  readonly rule: string;
  /** Such as `bad-istio.yaml`. */
  readonly name: string;
  readonly text: string;
}

export function ruleFolders(): readonly string[] {
  return readdirSync(FOLDER).toSorted();
}

export function ruleFiles(prefix: 'bad' | 'good'): readonly RuleFile[] {
  return ruleFolders().flatMap((rule) =>
    readdirSync(`${FOLDER}${rule}`)
      .filter((name) => name.startsWith(prefix))
      .map((name) => ({ rule, name, text: readFileSync(`${FOLDER}${rule}/${name}`, 'utf8') })),
  );
}

export interface Found {
  readonly rule: string;
  readonly line: number;
}

/** @throws Error when the text is no configuration of a gateway */
export function found(text: string, allowedRules: readonly string[] = []): readonly Found[] {
  const report = lintGateway(text, { allowedRules });
  if (report === undefined) throw new Error('nothing was recognised');
  return report.findings.map(({ place, rule }) => ({ rule, line: place.line }));
}

/** Lines that end in `# finding`. */
export function markedLines(text: string): readonly number[] {
  return text.split('\n').flatMap((line, i) => (line.endsWith('# finding') ? [i + 1] : []));
}

/** The clean bootstrap that the files of most rules are made from. */
export function cleanBootstrap(): string {
  return readFileSync(`${FOLDER}setting-twice/good.yaml`, 'utf8').replace(
    'failureModeAllow',
    'failure_mode_allow',
  );
}

/** The text with one passage exchanged. @throws Error when it does not hold it */
export function exchanged(text: string, passage: string, by: string): string {
  if (!text.includes(passage)) throw new Error(`not there: ${passage}`);
  return text.replace(passage, () => by);
}
