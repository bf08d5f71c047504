/**
 * Collects every answer that the API gives to readers: each GET of its own OpenAPI description, for the resources found on the
 * way.
 */
import { isJsonObject, type JsonObject, parseStrictJson } from '../../../../src/protocol/strict-json.ts';

/** Values of one parameter that are tried. */
const VALUES_A_PARAMETER = 3;

export interface CrawledAnswer {
  /** The path in the API description, such as `/v1/sites/{site_id}`. */
  readonly template: string;
  readonly status: number;
  readonly text: string;
}

/** @param token of somebody who may read everything */
export async function crawlApi(controlUrl: string, token: string): Promise<readonly CrawledAnswer[]> {
  const description = await answerOf(controlUrl, '/openapi.json', token);
  const { paths } = asObject(parseStrictJson(description.text));
  const templates = Object.entries(asObject(paths)).flatMap(([path, methods]) =>
    isReadable(asObject(methods).get) ? [path] : [],
  );
  const known = new Map<string, Set<string>>();
  const answers = new Map<string, CrawledAnswer>();
  for (let before = -1; before < answers.size; ) {
    before = answers.size;
    for (const template of templates) {
      for (const path of pathsOf(template, known)) {
        if (answers.has(path)) continue;
        const answer = await answerOf(controlUrl, path, token, template);
        answers.set(path, answer);
        if (answer.status === 200) collect(parsed(answer.text), known);
      }
    }
  }
  return [description, ...answers.values()];
}

/** Whether a path has a GET whose answer ends, which an event stream does not. */
function isReadable(get: unknown): boolean {
  return get !== undefined && !JSON.stringify(get).includes('text/event-stream');
}

async function answerOf(
  controlUrl: string,
  path: string,
  token: string,
  template = path,
): Promise<CrawledAnswer> {
  const answer = await fetch(`${controlUrl}${path}`, {
    headers: { authorization: `Bearer ${token}` },
    redirect: 'manual',
  });
  const headers = JSON.stringify([...answer.headers]);
  const text = await answer.text();
  return {
    template,
    status: answer.status,
    text: template === '/openapi.json' ? text : `${headers}\n${text}`,
  };
}

function parsed(text: string): unknown {
  try {
    return parseStrictJson(text.slice(text.indexOf('\n') + 1));
  } catch {
    return undefined;
  }
}

function pathsOf(template: string, known: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const name = /\{([a-z_]+)\}/.exec(template)?.[1];
  if (name === undefined) return [template];
  const values = [...(known.get(name) ?? [])].slice(0, VALUES_A_PARAMETER);
  return values.flatMap((value) => pathsOf(template.replace(`{${name}}`, encodeURIComponent(value)), known));
}

/** Every scalar member by its name. */
function collect(value: unknown, known: Map<string, Set<string>>): void {
  if (Array.isArray(value)) {
    for (const each of value) collect(each, known);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'string' || typeof member === 'number') {
      known.set(name, (known.get(name) ?? new Set()).add(String(member)));
    } else collect(member, known);
  }
}

function asObject(value: unknown): JsonObject {
  if (!isJsonObject(value)) throw new Error('not an object');
  return value;
}
