/**
 * Metrics of several processes as one answer: each series with a label that says whose it is. Sums would fall when a
 * worker is started again, and of revisions or ages there is none.
 * Source: https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
 */

interface Family {
  readonly head: readonly string[];
  readonly samples: string[];
}

/** @param texts in the exposition format; the lines of a metric must stand together, so they are put together */
export function mergeMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const text of texts) addText(families, text);
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

const COMMENT = /^# (?:HELP|TYPE) (\S+)/;

function addText(families: Map<string, Family>, text: string): void {
  let head: string[] = [];
  let family: Family | undefined;
  for (const line of text.split('\n')) {
    const name = COMMENT.exec(line)?.[1];
    if (name !== undefined) {
      if (line.startsWith('# HELP')) head = [];
      head.push(line);
      family = families.get(name) ?? { head, samples: [] };
      families.set(name, family);
    } else if (line !== '') {
      family?.samples.push(line);
    }
  }
}
