/** Finds command lines in texts, and checks each with its own program. */
import { PROGRAMS } from './programs.ts';
import { commandsBelow, GROUPS } from './proofgate.ts';
import { placeOf, type Span, spansIn } from './spans.ts';
import { commandsIn } from './words.ts';

/** Other common programs. Their command lines fail the test until programs.ts has an entry for the program. */
const USUAL =
  /^(?:docker|podman|buildah|istioctl|egctl|argocd|flux|kind|k3d|minikube|kustomize|oras|crane|skopeo|cosign|node|npx|npm|yarn|pnpm|go|git|python3?|pip|psql|pg_dump|pg_restore|redis-cli|redis-server|systemctl|curl|wget|openssl|ssh|jq|yq|apt-get)$/;

/** Log texts that look like a command of ours. */
const NO_COMMAND = /^bundle (?:updated|loaded|refused:|rejected:)$/;

const OPERAND_OR_FLAG = /(?:^|\s)\[?(?:[A-Z][A-Z_]+\b|--?[a-z])/;

/** The program and the words of a command line; undefined when the text is none. */
function lineOf(words: readonly string[]): readonly [program: string, words: readonly string[]] | undefined {
  const [first = '', ...rest] = words;
  if (Object.hasOwn(PROGRAMS, first) || (rest.length > 0 && USUAL.test(first))) return [first, rest];
  if (NO_COMMAND.test(words.join(' '))) return undefined;
  if (GROUPS.includes(first) && /^[a-z]/.test(rest[0] ?? '')) return ['proofgate', words];
  if (!OPERAND_OR_FLAG.test(rest.join(' '))) return undefined;
  if (commandsBelow('').includes(first)) return ['proofgate', words];
  return commandsBelow('ctl').includes(first) ? ['proofgate', ['ctl', ...words]] : undefined;
}

export interface Line {
  readonly place: string;
  readonly program: string;
  readonly words: readonly string[];
}

export function linesIn(span: Span): readonly Line[] {
  return commandsIn(span.text).flatMap((words) => {
    const [program, rest] = lineOf(words) ?? [];
    return program === undefined || rest === undefined
      ? []
      : [{ place: placeOf(span), program, words: rest }];
  });
}

const faults = new Map<string, Promise<string | undefined>>();

/** Checks the same words once, wherever they stand. */
export function faultOf(line: Line): Promise<string | undefined> {
  const key = JSON.stringify([line.program, line.words]);
  const fault = faults.get(key) ?? checkedFault(line);
  faults.set(key, fault);
  return fault;
}

async function checkedFault({ program, words }: Line): Promise<string | undefined> {
  const check = PROGRAMS[program];
  if (check === undefined) return `programs.ts has no check for ${program}`;
  return typeof check === 'function' ? check(words) : undefined;
}

/** @returns the fault of each command line of a text */
export function faultsIn(text: string): Promise<readonly (string | undefined)[]> {
  return Promise.all(spansIn('', `\`${text}\``).flatMap(linesIn).map(faultOf));
}
